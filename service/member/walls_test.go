package member_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/isolation"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/member"
)

func TestAPlanShowsTheWallsAndRestsOnThem(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.SQL(
		`UPDATE compute_node SET walls = '{"classes": ["CONTAINER", "WHOLE_NODE"], "profiles": ["SERVICE"], "gaps": []}'`)
	in := b.add("k", 1, b.one)
	plan, err := b.service.PlanAdd(b.admin, in)
	require.NoError(t, err)
	require.True(t, plan.Allowed)
	require.Equal(t, isolation.Service, plan.Members[0].Profile)
	require.Equal(t, isolation.Container, *plan.Members[0].IsolationClass)
	in.PlanHash = plan.Hash
	b.SQL(`UPDATE compute_node SET walls = '{"classes": ["VM"], "profiles": ["SERVICE"], "gaps": []}'`)
	before := b.written()
	_, err = b.service.Add(b.admin, in)
	platformtest.Refused(t, err, fault.PlanStale, "input.planHash")
	require.Equal(t, before, b.written())
}

func TestCapacityForMembersHasTheWallsThatTheAppNeeds(t *testing.T) {
	t.Parallel()
	b := setup(t)
	node, _ := b.Node(4)
	b.SQL(
		`UPDATE compute_node SET walls = '{"classes": ["CONTAINER", "WHOLE_NODE"], "profiles": ["NESTING"], "gaps": []}'`)
	in := b.add("k", 1)
	one := 1
	in.Intent = &member.Intent{Shape: lifecycle.ShapeGPUSlice, GPUCount: &one}
	before := b.written()
	_, err := b.service.Add(b.admin, in)
	platformtest.Refused(t, err, fault.ClassUnavailable, "input.intent")
	require.Equal(t, before, b.written(), "no node offers the profile that the app's members have")
	b.SQL(`UPDATE compute_node SET walls = '{"classes": ["CONTAINER", "VM"], "profiles": ["SERVICE"], "gaps": []}'
		WHERE id = $1`, node.ID)
	in.Intent.Class = isolation.VM
	added, err := b.service.Add(b.admin, in)
	require.NoError(t, err)
	require.Equal(t, isolation.VM, *added.Members[0].IsolationClass, "who rents may demand more than the app")
}
