package e2e_test

import (
	"context"
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
// observation, plan and drain. That an instance says CALLS_NARROWED, whose version names no inspections, is with the
// faults of workers/reconcile.
func TestAClusterLivesUnderNarrowedCalls(t *testing.T) {
	ctx, c := bounded(t), automation(t)
	narrow(t, ctx, "hello-cluster", true)
	t.Cleanup(func() { narrow(t, context.Background(), "hello-cluster", false) })
	allocation := rent(t, ctx, c)
	instance, operation := launch(t, ctx, c, "hello-cluster", "hello-narrow", allocation)
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
