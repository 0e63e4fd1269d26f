package e2e_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// A slurmd that hangs is Slurm's to notice: its process lives, so the platform has nothing to repair. The
// adapter replaces the worker by the account that the project chose for the instance, and the audit names that
// account, and the adapter's own as the one that it acted for.
func TestTheAdapterReplacesAWorkerThatSlurmHasGivenUp(t *testing.T) {
	needsRoot(t)
	if !*everyApp {
		t.Skip("Slurm takes a minute to give a worker up: make onboarding")
	}
	t.Parallel()
	ctx, c := bounded(t), automation(t)
	made, err := gql.CreateServiceAccount(ctx, shared.Operator, gql.CreateServiceAccountInput{
		ProjectId: shared.Demo.ProjectID, Name: "slurm-mender", IdempotencyKey: client.NewKey(),
		PermissionKeys: []string{"scheduler.node.read", "scheduler.member.replace", "operation.read"}})
	require.NoError(t, err)
	chosen := made.CreateServiceAccount.Id
	started, err := gql.LaunchInstance(ctx, c, gql.LaunchInstanceInput{ProjectId: shared.Demo.ProjectID,
		AppSlug: "slurm",
		Name:    "slurm-mended", AllocationIds: []string{rent(t, ctx, c)}, OperatorServiceAccountId: chosen,
		DeadlineSeconds: 180, Reason: "end-to-end test", IdempotencyKey: client.NewKey()})
	require.NoError(t, err)
	k := &clusterUnderTest{t: t, ctx: ctx, c: c, instance: started.LaunchInstance.Instance.Id}
	succeeds(t, ctx, c, started.LaunchInstance.Operation.Id)

	hung := k.workers()["w0"]
	k.toSlurmd(hung, "kill -STOP $pid")
	require.Eventually(t, func() bool {
		newcomer, there := k.workers()["w1"]
		return there && newcomer.Status == gql.MemberStatusActive
	}, 3*time.Minute, time.Second, "the worker was not replaced: %+v", k.workers())
	awaitJob(t, ctx, c, k.instance, k.submit("#!/bin/sh\ntrue\n"))

	entries, err := gql.SearchAudit(ctx, shared.Operator, gql.AuditFilterInput{ProjectId: shared.Demo.ProjectID,
		ActorId: chosen, Action: "replaceMember"}, 10, "")
	require.NoError(t, err)
	require.Len(t, entries.SearchAudit.Edges, 1)
	entry := entries.SearchAudit.Edges[0].Node
	require.True(t, entry.Allowed)
	require.Contains(t, entry.Reason, "Not responding")
	var after struct {
		Requester struct{ Kind, Name string }
	}
	require.NoError(t, json.Unmarshal(entry.After, &after))
	require.Equal(t, "SERVICE_ACCOUNT", after.Requester.Kind)
	require.Equal(t, "slurm-reference", after.Requester.Name)
	decommission(t, ctx, c, k.instance)
}

// toSlurmd runs a command on a worker's node once for its slurmd, whose process is $pid.
func (k *clusterUnderTest) toSlurmd(worker gql.Member, command string) {
	k.t.Helper()
	out, err := k.node(worker).Exec(k.ctx, "/bin/sh", "-c", `for dir in /proc/[0-9]*; do
		pid=${dir#/proc/}
		grep -qs '^slurmd$' $dir/comm && grep -qs `+worker.Id+` $dir/cgroup && `+command+` && echo done
		done; true`)
	require.NoError(k.t, err)
	require.True(k.t, strings.HasPrefix(out, "done"), "no slurmd of %s is there: %s", worker.Id, out)
}
