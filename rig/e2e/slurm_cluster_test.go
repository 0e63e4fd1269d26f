package e2e_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/rig/stack"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// clusterUnderTest is one Slurm cluster over several nodes, seen only through the public API.
type clusterUnderTest struct {
	t        *testing.T
	ctx      context.Context
	c        *client.Client
	instance string
	// long is a job that runs from the first second to the last, and began when it began.
	long, began string
}

// rentNode takes a whole node for a test and gives it back at its end, with proof.
func rentNode(t *testing.T, ctx context.Context, c *client.Client) string {
	t.Helper()
	got, err := gql.RequestAllocation(ctx, c, gql.RequestAllocationInput{
		ProjectId: shared.Demo.ProjectID, Shape: gql.CapacityShapeBaremetal, Count: 1, IdempotencyKey: client.NewKey(),
	})
	require.NoError(t, err)
	id := got.RequestAllocation.Allocations[0].Id
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		release, err := gql.ReleaseAllocation(ctx, c, gql.ReleaseAllocationInput{AllocationId: id,
			IdempotencyKey: client.NewKey()})
		require.NoError(t, err)
		succeeds(t, ctx, c, release.ReleaseAllocation.Operation.Id)
	})
	return id
}

// queued is a job as the app's queue.list answers it.
type queued struct {
	JobID     string `json:"jobId"`
	State     string `json:"state"`
	NodeList  string `json:"nodeList"`
	StartedAt string `json:"startedAt"`
}

func (k *clusterUnderTest) submit(script string) string {
	k.t.Helper()
	var submitted struct {
		JobID string `json:"jobId"`
	}
	act(k.t, k.ctx, k.c, k.instance, "queue.submit", map[string]any{"script": script}, &submitted)
	return submitted.JobID
}

// job waits until a job is in a state.
func (k *clusterUnderTest) job(id, state string) (found queued) {
	k.t.Helper()
	require.Eventually(k.t, func() bool {
		var queue struct {
			Jobs []queued `json:"jobs"`
		}
		act(k.t, k.ctx, k.c, k.instance, "queue.list", map[string]any{"jobId": id, "outputBytes": 0}, &queue)
		found = queue.Jobs[0]
		return found.State == state
	}, 90*time.Second, 300*time.Millisecond, "job %s never was %s", id, state)
	return found
}

// untouched requires that the long job still runs, and has done so without a break.
func (k *clusterUnderTest) untouched() {
	k.t.Helper()
	require.Equal(k.t, k.began, k.job(k.long, "RUNNING").StartedAt, "the long job was begun again")
}

// workers are the members of the worker component that have not left, by Slurm's name for them.
func (k *clusterUnderTest) workers() map[string]gql.Member {
	k.t.Helper()
	list := make(map[string]gql.Member)
	for _, member := range membersOf(k.t, k.ctx, k.c, k.instance) {
		var detail struct {
			SlurmNode string `json:"slurmNode"`
		}
		_ = json.Unmarshal(member.AdapterDetail, &detail)
		if member.ComponentKey == "worker" && member.Status != gql.MemberStatusRemoved {
			list[detail.SlurmNode] = member
		}
	}
	return list
}

// controller is the member of the controller component.
func (k *clusterUnderTest) controller() gql.Member {
	k.t.Helper()
	for _, member := range membersOf(k.t, k.ctx, k.c, k.instance) {
		if member.ComponentKey == "controller" {
			return member
		}
	}
	k.t.Fatal("the cluster has no controller")
	return gql.Member{}
}

func (k *clusterUnderTest) succeeds(operation gql.Operation) *gql.OperationDetail {
	k.t.Helper()
	return succeeds(k.t, k.ctx, k.c, operation.Id)
}

// node is the lab's node that a member is on.
func (k *clusterUnderTest) node(member gql.Member) *stack.Node {
	k.t.Helper()
	return nodeOf(k.t, member)
}
