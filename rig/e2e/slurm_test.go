package e2e_test

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// launch requests an instance of an app and returns it with its operation.
func launch(t *testing.T, ctx context.Context, c *client.Client, app, name, allocation string) (instance,
	operation string) {
	t.Helper()
	started, err := gql.LaunchInstance(ctx, c, gql.LaunchInstanceInput{
		ProjectId: shared.Demo.ProjectID, AppSlug: app, Name: name, AllocationIds: []string{allocation},
		DeadlineSeconds: 180,
		Reason:          "end-to-end test", IdempotencyKey: client.NewKey(),
	})
	require.NoError(t, err)
	return started.LaunchInstance.Instance.Id, started.LaunchInstance.Operation.Id
}

// decommission tears an instance down, requires success, and answers the operation with its evidence.
func decommission(t *testing.T, ctx context.Context, c *client.Client, instance string) *gql.OperationDetail {
	t.Helper()
	ended, err := gql.DecommissionInstance(ctx, c, gql.DecommissionInstanceInput{
		InstanceId: instance, DeadlineSeconds: 180, Reason: "end-to-end test", IdempotencyKey: client.NewKey(),
	})
	require.NoError(t, err)
	return succeeds(t, ctx, c, ended.DecommissionInstance.Operation.Id)
}

// act asks an action and decodes its output.
func act(t *testing.T, ctx context.Context, c *client.Client, instance, action string, input, output any) {
	t.Helper()
	encoded, err := json.Marshal(input)
	require.NoError(t, err)
	answer, err := gql.InvokeAction(ctx, c, gql.InvokeActionInput{
		InstanceId: instance, Action: action, Input: encoded, IdempotencyKey: client.NewKey(),
	})
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(answer.InvokeAction.Output, output))
}

// needsRoot ends a test that cannot run without namespaces.
func needsRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("local nodes in namespaces need root")
	}
}

func TestASlurmClusterComesUpRunsAJobAndLeavesNothing(t *testing.T) {
	needsRoot(t)
	t.Parallel()
	ctx, c := bounded(t), automation(t)
	instance, operation := launch(t, ctx, c, "slurm", "slurm-api", rent(t, ctx, c))
	succeeds(t, ctx, c, operation)

	found, err := gql.GetInstance(ctx, c, instance)
	require.NoError(t, err)
	require.Equal(t, gql.InstanceStatusRunning, found.Instance.Status)

	var submitted struct {
		JobID json.RawMessage `json:"jobId"`
	}
	act(t, ctx, c, instance, "queue.submit", map[string]any{"name": "hello", "gpus": 1,
		"script": "#!/bin/bash\nhostname\necho done-by-slurm\nls /dev/nvidia[0-9]* | wc -l\necho " +
			"gpu=$CUDA_VISIBLE_DEVICES\n"},
		&submitted)
	job := strings.Trim(string(submitted.JobID), `"`)
	awaitJob(t, ctx, c, instance, job)
	var printed struct{ Text string }
	act(t, ctx, c, instance, "job.output", map[string]any{"jobId": job}, &printed)
	require.True(t, strings.HasSuffix(printed.Text, "done-by-slurm\n1\ngpu=0\n"), "the one GPU of its slice: %s",
		printed.Text)
	requireToldOfMemory(t, ctx, c, instance)
	requireCounted(t, ctx, instance, "jobs", "jobs/"+job+"/")

	act(t, ctx, c, instance, "queue.submit", map[string]any{"name": "cut-off", "script": "#!/bin/sh\nsleep 600\n"},
		&submitted)
	cut := strings.Trim(string(submitted.JobID), `"`)
	(&clusterUnderTest{t: t, ctx: ctx, c: c, instance: instance}).job(cut, "RUNNING")

	members := memberIDs(t, ctx, c, instance)
	requireTraces(t, ctx, members)
	requireProof(t, decommission(t, ctx, c, instance), members)
	requireCounted(t, ctx, instance, "jobs", "jobs/"+cut+"/") // it ended with its cluster
	gone, err := gql.GetInstance(ctx, c, instance)
	require.NoError(t, err)
	require.Equal(t, gql.InstanceStatusStopped, gone.Instance.Status)
	require.NotNil(t, gone.Instance.ReleasedAt)
	requireGone(t, ctx, members)
}

// A controller is proved by a job, which needs a worker: where both have died, the platform brings back one after the
// other, and proves them together.
func TestASlurmClusterWhoseMembersAllDieComesBack(t *testing.T) {
	needsRoot(t)
	t.Parallel()
	ctx, c := bounded(t), automation(t)
	instance, operation := launch(t, ctx, c, "slurm", "slurm-dies", rent(t, ctx, c))
	succeeds(t, ctx, c, operation)
	_, err := gql.SetRepairPolicy(ctx, c, gql.SetRepairPolicyInput{InstanceId: instance, Mode: gql.RepairModeAutomatic,
		Budget: 10, BackOffSeconds: 5, Reason: "end-to-end test"})
	require.NoError(t, err)
	k := &clusterUnderTest{t: t, ctx: ctx, c: c, instance: instance}
	for _, one := range membersOf(t, ctx, c, instance) {
		killInit(t, ctx, k.node(one), one.Id)
	}
	require.Eventually(t, func() bool {
		return !slices.ContainsFunc(membersOf(t, ctx, c, instance), func(one gql.Member) bool {
			return one.Status != gql.MemberStatusActive || one.LastOperation.Kind != gql.OperationKindMemberRecover
		})
	}, 3*time.Minute, time.Second, "not all members were recovered")
	job := k.submit("#!/bin/sh\ntrue\n")
	awaitJob(t, ctx, c, instance, job)
	decommission(t, ctx, c, instance)
}

// requireCounted waits until the command line shows a record of an instance's app, and requires that it is one and that
// the adapter's other records were taken too.
func requireCounted(t *testing.T, ctx context.Context, instance, meter, id string) {
	t.Helper()
	var found []gql.UsageRecord
	defer func() {
		if t.Failed() {
			t.Log(appctl(t, ctx, "usage", "sources", "-o", "json"),
				appctl(t, ctx, "usage", "list", "--instance", instance))
		}
	}()
	require.Eventually(t, func() bool {
		var listed []gql.UsageRecord
		text := appctl(t, ctx, "usage", "list", "--instance", instance, "--meter", meter, "-o", "json")
		require.NoError(t, json.Unmarshal([]byte(text), &listed), "%s", text)
		found = slices.DeleteFunc(listed, func(one gql.UsageRecord) bool { return !strings.HasPrefix(one.UsageId, id) })
		return len(found) > 0
	}, 2*time.Minute, time.Second, "no record %s", id)
	require.Len(t, found, 1)
	require.Equal(t, "1", found[0].Quantity)
	require.Equal(t, gql.UsageBasisApp, found[0].Basis)
	require.NotContains(t, appctl(t, ctx, "usage", "quarantine"), instance)
}

// requireToldOfMemory lets a job take all memory of its member's slice, and requires that the kernel ends what takes it
// and nothing else, and that the instance's timeline reports it.
func requireToldOfMemory(t *testing.T, ctx context.Context, c *client.Client, instance string) {
	t.Helper()
	var submitted struct {
		JobID json.RawMessage `json:"jobId"`
	}
	act(t, ctx, c, instance, "queue.submit", map[string]any{"name": "greedy",
		"script": "#!/bin/bash\ntail /dev/zero\n[ $? = 137 ]\n"}, &submitted)
	awaitJob(t, ctx, c, instance, strings.Trim(string(submitted.JobID), `"`)) // the script itself lives on
	watching, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	for event, err := range c.Timeline(watching, instance, "") {
		require.NoError(t, err)
		if event.Type != "apps.instance.member_out_of_memory" {
			continue
		}
		require.NotNil(t, event.MemberId)
		require.Contains(t, memberIDs(t, ctx, c, instance), *event.MemberId)
		require.Contains(t, event.Message, "had no memory left: the kernel of its node killed 1 of its processes")
		require.JSONEq(t, "1", string(payloadOf(t, event)["killed"]))
		return
	}
	require.Fail(t, "the timeline does not tell of it")
}

func payloadOf(t *testing.T, event *gql.Event) (payload map[string]json.RawMessage) {
	t.Helper()
	require.NoError(t, json.Unmarshal(event.Payload, &payload))
	return payload
}

// awaitJob waits until the queue says that the job has completed.
func awaitJob(t *testing.T, ctx context.Context, c *client.Client, instance, job string) {
	t.Helper()
	var queue struct {
		Jobs []map[string]json.RawMessage `json:"jobs"`
	}
	defer func() {
		if t.Failed() {
			t.Logf("job %s did not complete: %s", job, queue.Jobs)
		}
	}()
	require.Eventually(t, func() bool {
		act(t, ctx, c, instance, "queue.list", map[string]any{}, &queue)
		for _, row := range queue.Jobs {
			id := strings.Trim(string(row["jobId"])+string(row["id"]), `"`)
			if id == job && strings.Contains(string(row["state"]), "COMPLETED") {
				return true
			}
		}
		return false
	}, 90*time.Second, 500*time.Millisecond)
}

// clusterNodes is how many nodes the cluster itself knows.
func clusterNodes(t *testing.T, ctx context.Context, c *client.Client, instance string) int {
	t.Helper()
	var listed struct {
		Nodes []json.RawMessage `json:"nodes"`
	}
	act(t, ctx, c, instance, "node.list", map[string]any{}, &listed)
	return len(listed.Nodes)
}

func TestATimelineHasNoGapAndNoDuplicateOverARestart(t *testing.T) {
	ctx, c := bounded(t), automation(t)
	instance, operation := launch(t, ctx, c, "hello-cluster", "hello-timeline", rent(t, ctx, c))
	watching, stop := context.WithCancel(ctx)
	defer stop()
	numbers := make(chan int, 1_000)
	go func() {
		defer close(numbers)
		for event, err := range c.Timeline(watching, instance, "") {
			if err != nil {
				return
			}
			numbers <- event.Seq
			if event.Type == "apps.instance.deleted" {
				return
			}
		}
	}()
	require.NoError(t, shared.Server.Restart(ctx))
	require.NoError(t, shared.AwaitReady(ctx))
	succeeds(t, ctx, c, operation)
	require.NoError(t, shared.Server.Restart(ctx))
	require.NoError(t, shared.AwaitReady(ctx))
	decommission(t, ctx, c, instance)
	next := 1
	for number := range numbers {
		require.Equal(t, next, number)
		next++
	}
	found, err := gql.GetInstance(ctx, c, instance)
	require.NoError(t, err)
	require.GreaterOrEqual(t, next, 5)
	require.LessOrEqual(t, next-1, found.Instance.Revision)
}
