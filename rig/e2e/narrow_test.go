package e2e_test

import (
	"context"
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// narrow sets the operator's switch for an adapter.
func narrow(t *testing.T, ctx context.Context, name string, on bool) {
	t.Helper()
	listed, err := gql.ListAdapters(ctx, shared.Operator, 50, "")
	require.NoError(t, err)
	for _, edge := range listed.Adapters.Edges {
		if edge.Node.Name == name {
			_, err := gql.RegisterAdapter(ctx, shared.Operator,
				gql.RegisterAdapterInput{Name: name, Url: edge.Node.Url, NarrowCalls: &on})
			require.NoError(t, err)
			return
		}
	}
	t.Fatalf("no adapter %s among %d", name, len(listed.Adapters.Edges))
}

// The reference controller and the agents go on when the operator narrows the calls that only look: launch, actions,
// observation, plan and drain. A version that names no inspections is not known to be healthy then, and says why.
func TestAClusterLivesUnderNarrowedCalls(t *testing.T) {
	ctx, c := bounded(t), automation(t)
	narrow(t, ctx, "hello-cluster", true)
	t.Cleanup(func() { narrow(t, context.Background(), "hello-cluster", false) })
	version := uninspected(t, ctx)
	allocation := rent(t, ctx, c)
	instance, operation := launch(t, ctx, c, "hello-cluster", "hello-narrow", allocation)
	silent, launched := smokeOf(t, ctx, version)
	succeeds(t, ctx, c, operation)
	var greeted, listed map[string]any
	act(t, ctx, c, instance, "hello.say", map[string]any{"name": "Mo"}, &greeted)
	require.NotEmpty(t, greeted["greetings"])
	act(t, ctx, c, instance, "hello.list", map[string]any{}, &listed)
	found := healthy(t, ctx, c, instance)
	member := found.Members.Edges[0].Node.Id
	plan, err := gql.PlanDrainMember(ctx, c, gql.PlanMemberInput{MemberId: member})
	require.NoError(t, err)
	require.True(t, plan.PlanDrainMember.Allowed, "%+v", plan.PlanDrainMember)
	drained, err := gql.DrainMember(ctx, c, gql.DrainMemberInput{MemberId: member, PlanHash: plan.PlanDrainMember.Hash,
		Reason: "end-to-end test", IdempotencyKey: client.NewKey()})
	require.NoError(t, err)
	succeeds(t, ctx, c, drained.DrainMember.Operation.Id)
	decommission(t, ctx, c, instance)

	succeeds(t, ctx, shared.Operator, launched)
	narrowed(t, ctx, silent)
	decommission(t, ctx, shared.Operator, silent)
}

// uninspected publishes a version of the app that names nothing that its adapter may run while it looks.
func uninspected(t *testing.T, ctx context.Context) (version string) {
	t.Helper()
	app, err := gql.GetApp(ctx, shared.Operator, "hello-cluster")
	require.NoError(t, err)
	printed, err := exec.CommandContext(ctx, "../../bin/hello-cluster-controller", "--print-manifest").Output()
	require.NoError(t, err)
	var document map[string]any
	require.NoError(t, json.Unmarshal(printed, &document))
	pinned := app.App.ActiveManifest.Artifacts[0]
	document["artifacts"] = []map[string]string{{"name": pinned.Name, "mediaType": pinned.MediaType, "ref": pinned.Ref,
		"digest": pinned.Digest}}
	version = "9.9.9-" + strings.ToLower(client.NewKey()[:6])
	delete(document, "inspections")
	document["version"] = version
	encoded, err := json.Marshal(document)
	require.NoError(t, err)
	_, err = gql.PublishManifest(ctx, shared.Operator,
		gql.PublishManifestInput{Document: encoded, IdempotencyKey: client.NewKey()})
	require.NoError(t, err)
	return version
}

// smokeOf launches a version as a smoke test, on capacity that is given back at the test's end.
func smokeOf(t *testing.T, ctx context.Context, version string) (instance, operation string) {
	t.Helper()
	rented, err := gql.RequestAllocation(ctx, shared.Operator, gql.RequestAllocationInput{
		ProjectId: shared.Demo.LabProjectID, Shape: gql.CapacityShapeGpuSlice, Count: 1, GpuCount: 1,
		IdempotencyKey: client.NewKey(),
	})
	require.NoError(t, err)
	allocation := rented.RequestAllocation.Allocations[0].Id
	t.Cleanup(func() {
		released, err := gql.ReleaseAllocation(context.Background(), shared.Operator,
			gql.ReleaseAllocationInput{AllocationId: allocation, Reason: "end-to-end test", IdempotencyKey: client.NewKey()})
		require.NoError(t, err)
		succeeds(t, context.Background(), shared.Operator, released.ReleaseAllocation.Operation.Id)
	})
	launched, err := gql.LaunchInstance(ctx, shared.Operator, gql.LaunchInstanceInput{
		ProjectId: shared.Demo.LabProjectID, AppSlug: "hello-cluster", Version: version, Name: "hello-silent",
		AllocationIds: []string{allocation}, DeadlineSeconds: 120, Smoke: true, Reason: "end-to-end test",
		IdempotencyKey: client.NewKey(),
	})
	require.NoError(t, err)
	return launched.LaunchInstance.Instance.Id, launched.LaunchInstance.Operation.Id
}

// healthy waits until the adapter's observation says that the instance is.
func healthy(t *testing.T, ctx context.Context, c *client.Client, instance string) (found gql.InstanceDetail) {
	t.Helper()
	require.Eventually(t, func() bool {
		answer, err := gql.GetInstance(ctx, c, instance)
		require.NoError(t, err)
		found = answer.Instance
		return found.Health == gql.HealthHealthy
	}, time.Minute, 200*time.Millisecond)
	return found
}

// narrowed waits until the instance says that its calls are narrowed and its version names no inspections.
func narrowed(t *testing.T, ctx context.Context, instance string) {
	t.Helper()
	require.Eventually(t, func() bool {
		answer, err := gql.GetInstance(ctx, shared.Operator, instance)
		require.NoError(t, err)
		return slices.ContainsFunc(answer.Instance.Blockers, func(one gql.Blocker) bool { return one.Code == "CALLS_NARROWED" })
	}, time.Minute, 200*time.Millisecond)
}
