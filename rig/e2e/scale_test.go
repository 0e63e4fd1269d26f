package e2e_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// scale brings the cluster's peers to a number by a plan and the operation that it authorises, and returns those that
// came and those that left.
func scale(t *testing.T, ctx context.Context, c *client.Client, instance, allocation string,
	to int) (added, removed []gql.Member) {
	t.Helper()
	plan, err := gql.PlanScaleComponent(ctx, c, gql.PlanScaleComponentInput{
		InstanceId: instance, ComponentKey: "peer", Count: to, AllocationIds: []string{allocation}})
	require.NoError(t, err)
	require.True(t, plan.PlanScaleComponent.Allowed, "%+v", plan.PlanScaleComponent.Verdicts)
	made, err := gql.ScaleComponent(ctx, c, gql.ScaleComponentInput{
		InstanceId: instance, ComponentKey: "peer", Count: to, AllocationIds: []string{allocation},
		PlanHash: plan.PlanScaleComponent.Hash, Reason: "end-to-end test", IdempotencyKey: client.NewKey()})
	require.NoError(t, err)
	succeeds(t, ctx, c, made.ScaleComponent.Operation.Id)
	for _, planned := range plan.PlanScaleComponent.Members {
		if planned.Member != nil {
			require.Contains(t, idsOf(made.ScaleComponent.Removed), planned.Member.Id, "whom the plan showed")
		}
	}
	return made.ScaleComponent.Added, made.ScaleComponent.Removed
}

func idsOf(members []gql.Member) (list []string) {
	for _, member := range members {
		list = append(list, member.Id)
	}
	return list
}

// A component is scaled up and down by one operation each, the app's own words of it are shown, and the place of a
// decommissioned instance, which its caller brought, takes the next launch at once.
func TestAComponentIsScaledUpAndDownAndItsPlaceIsKept(t *testing.T) {
	ctx, c := bounded(t), automation(t)
	allocation := rent(t, ctx, c)
	instance, operation := launch(t, ctx, c, "hello-cluster", "hello-scaled", allocation)
	succeeds(t, ctx, c, operation)
	before := len(memberIDs(t, ctx, c, instance))
	added, removed := scale(t, ctx, c, instance, allocation, before+2)
	require.Len(t, added, 2)
	require.Empty(t, removed)
	var greeted map[string]any
	act(t, ctx, c, instance, "hello.say", map[string]any{"name": "Mo"}, &greeted)
	require.Len(t, greeted["greetings"], before+2, "every peer answers")

	added, removed = scale(t, ctx, c, instance, allocation, 1)
	require.Empty(t, added)
	require.Len(t, removed, before+1)
	requireGone(t, ctx, idsOf(removed))
	require.Eventually(t, func() bool {
		role := healthy(t, ctx, c, instance).Roles[0]
		return role.Desired == 1 && role.Current == 1 && role.RuntimeState != nil &&
			role.RuntimeState.Summary == "1 of 1 peers run"
	}, time.Minute, 200*time.Millisecond, "the app says of its component how it is")

	decommission(t, ctx, c, instance)
	again, operation := launch(t, ctx, c, "hello-cluster", "hello-scaled", allocation)
	succeeds(t, ctx, c, operation)
	decommission(t, ctx, c, again)
}

// A launch that names no allocation requests what its members live in, and its teardown gives that back.
func TestALaunchRequestsItsCapacityAndGivesItBack(t *testing.T) {
	ctx, c := bounded(t), automation(t)
	gpus, components := 1, []gql.ComponentInput{{Key: "peer", Count: 2,
		Intent: &gql.CapacityIntentInput{Shape: gql.CapacityShapeGpuSlice}}}
	components[0].Intent.GpuCount = &gpus
	plan, err := gql.PlanLaunchInstance(ctx, c, gql.PlanLaunchInstanceInput{ProjectId: shared.Demo.ProjectID,
		AppSlug: "hello-cluster", Name: "hello-housed", Components: components})
	require.NoError(t, err)
	require.True(t, plan.PlanLaunchInstance.Allowed, "%+v", plan.PlanLaunchInstance.Verdicts)
	require.Len(t, plan.PlanLaunchInstance.Members, 2)
	require.NotNil(t, plan.PlanLaunchInstance.Members[0].Capacity)
	require.Empty(t, ofInstance(t, ctx, c, "hello-housed"), "a plan rents nothing")

	made, err := gql.LaunchInstance(ctx, c, gql.LaunchInstanceInput{ProjectId: shared.Demo.ProjectID,
		AppSlug: "hello-cluster", Name: "hello-housed", Components: components, PlanHash: plan.PlanLaunchInstance.Hash,
		Reason: "end-to-end test", IdempotencyKey: client.NewKey()})
	require.NoError(t, err)
	succeeds(t, ctx, c, made.LaunchInstance.Operation.Id)
	rented := ofInstance(t, ctx, c, "hello-housed")
	require.Len(t, rented, 2, "one for each member")
	decommission(t, ctx, c, made.LaunchInstance.Instance.Id)
	live, err := gql.ListAllocations(ctx, c, shared.Demo.ProjectID,
		[]gql.AllocationStatus{gql.AllocationStatusReady}, 100, "")
	require.NoError(t, err)
	for _, left := range live.Allocations.Edges {
		require.NotContains(t, rented, left.Node.Id, "what the launch requested went with the instance")
	}
}

// ofInstance lists the allocations that an instance of this name uses.
func ofInstance(t *testing.T, ctx context.Context, c *client.Client, name string) (list []string) {
	t.Helper()
	found, err := gql.ListAllocations(ctx, c, shared.Demo.ProjectID, nil, 100, "")
	require.NoError(t, err)
	for _, edge := range found.Allocations.Edges {
		if edge.Node.Instance != nil && edge.Node.Instance.Name == name {
			list = append(list, edge.Node.Id)
		}
	}
	return list
}
