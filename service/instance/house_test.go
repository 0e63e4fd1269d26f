package instance_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/service/kit/capacity"
	"github.com/gpuaas/app-platform/service/kit/tariff"
)

// slice is a share of a node with so many GPUs.
func slice(gpus int) *capacity.Want {
	return &capacity.Want{Shape: lifecycle.ShapeGPUSlice, GPUCount: &gpus}
}

// housed is a launch whose components request what its members live in.
func (b *bundle) housed(change ...func(*instance.LaunchInput)) instance.LaunchInput {
	return b.launch(append([]func(*instance.LaunchInput){func(in *instance.LaunchInput) {
		in.AllocationIDs = nil
		in.Components = []instance.Component{{Key: "head", Count: 1, Intent: slice(1)},
			{Key: "worker", Count: 2, Intent: slice(2)}}
	}}, change...)...)
}

func TestALaunchRequestsWhatItsMembersLiveIn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Node(4)
	b.Node(4)
	b.ListPrice("sim", "EUR", "1.25")
	b.SQL(`UPDATE compute_node SET sku = 'sim'`)
	before := b.written()
	plan, err := b.service.PlanLaunch(b.ctx, b.housed())
	require.NoError(t, err)
	require.True(t, plan.Allowed, "%+v", plan.Verdicts)
	require.Len(t, plan.Members, 3)
	require.Nil(t, plan.Members[0].AllocationID, "it does not exist yet")
	require.Equal(t, []int{1, 2, 2}, []int{plan.Members[0].Capacity.GPUCount, plan.Members[1].Capacity.GPUCount,
		plan.Members[2].Capacity.GPUCount})
	for _, line := range plan.Cost.Capacity {
		require.Equal(t, tariff.Rented, line.Effect)
	}
	total := plan.Cost.Totals[0]
	require.Equal(t, []string{"0", "3.75"}, []string{total.Before.String(), total.After.String()},
		"three shares that nobody pays for yet")
	require.Equal(t, before, b.written())
	require.Equal(t, 2, b.Count("allocation", ""))

	started, err := b.service.Launch(b.ctx, b.housed(func(in *instance.LaunchInput) { in.PlanHash = plan.Hash }))
	require.NoError(t, err)
	require.Equal(t, 3, b.Count("allocation",
		"instance_id = $1 AND created_by_operation_id = $2 AND shape = 'GPU_SLICE'",
		started.Instance.ID, started.Operation.ID))
	require.Equal(t, 3, b.Count("member m JOIN allocation a ON a.id = m.allocation_id",
		"m.instance_id = $1 AND a.node_id = m.node_id AND a.gpu_count = CASE m.component_key "+
			"WHEN 'head' THEN 1 ELSE 2 END",
		started.Instance.ID))
	require.Equal(t, 1, b.Count("instance", "id = $1 AND bound_capacity_shape = 'GPU_SLICE'", started.Instance.ID))
	for _, told := range []lifecycle.EventType{lifecycle.EventAllocationRequested, lifecycle.EventAllocationReady} {
		require.Equal(t, 3, b.Count("app_instance_event", "type = $1 AND instance_id = $2", told, started.Instance.ID))
	}
	require.Equal(t, 1, b.Count("audit_entry",
		"allowed AND action = 'launchInstance' AND permission_key = 'allocation.create'"))

	again, err := b.service.Launch(b.ctx, b.housed(func(in *instance.LaunchInput) { in.PlanHash = plan.Hash }))
	require.NoError(t, err)
	require.Equal(t, started.Instance.ID, again.Instance.ID, "the key's repeat requests nothing")
	require.Equal(t, 5, b.Count("allocation", ""))
}

func TestSomeComponentsOfALaunchMayBringTheirAllocations(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Node(4)
	started, err := b.service.Launch(b.ctx, b.housed(func(in *instance.LaunchInput) {
		in.Components[0] = instance.Component{Key: "head", Count: 1, AllocationIDs: []ids.ID{b.one.ID}}
		in.Components[1].Count = 1
	}))
	require.NoError(t, err)
	require.Equal(t, 1, b.Count("member", "instance_id = $1 AND component_key = 'head' AND allocation_id = $2",
		started.Instance.ID, b.one.ID))
	require.Equal(t, 1, b.Count("allocation", "instance_id = $1 AND created_by_operation_id IS NULL",
		started.Instance.ID))
	require.Equal(t, 1, b.Count("allocation", "instance_id = $1 AND created_by_operation_id = $2", started.Instance.ID,
		started.Operation.ID))
}

// TestAnIntentBesideNamedAllocationsIsOfFurtherMembersAlone holds what clients of yesterday were promised.
func TestAnIntentBesideNamedAllocationsIsOfFurtherMembersAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Node(4)
	started, err := b.service.Launch(b.ctx, b.housed(func(in *instance.LaunchInput) {
		in.AllocationIDs = []ids.ID{b.one.ID, b.two.ID}
	}))
	require.NoError(t, err)
	require.Zero(t, b.Count("allocation", "created_by_operation_id IS NOT NULL"))
	require.Equal(t, 2, b.Count("allocation", "instance_id = $1", started.Instance.ID))
}

func TestALaunchThatRequestsIsRefusedWhole(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Node(4)
	worker := func(intent *capacity.Want) func(*instance.LaunchInput) {
		return func(in *instance.LaunchInput) { in.Components[1].Intent = intent }
	}
	for name, c := range map[string]struct {
		code   fault.Code
		path   string
		change func(*instance.LaunchInput)
		before string
	}{
		"nothing named": {fault.InvalidArgument, "input.allocationIds",
			func(in *instance.LaunchInput) { in.Components = nil }, ""},
		"no home": {fault.InvalidArgument, "input.components.1.intent", worker(nil), ""},
		"one unnamed": {fault.InvalidArgument, "input.components",
			func(in *instance.LaunchInput) { in.Components = in.Components[:1] }, ""},
		"too large": {fault.CapacityUnavailable, "input.components.1.intent", worker(slice(9)), ""},
		"quota":     {fault.LimitExceeded, "input.components", worker(slice(1)), `UPDATE project SET max_gpus = 10`},
	} {
		if c.before != "" {
			b.SQL(c.before)
		}
		before, rented := b.written(), b.Count("allocation", "")
		_, err := b.service.Launch(b.ctx, b.housed(c.change, func(in *instance.LaunchInput) {
			in.IdempotencyKey = strings.ReplaceAll(name, " ", "-")
		}))
		platformtest.Refused(t, err, c.code, c.path)
		require.Equal(t, []any{before, rented}, []any{b.written(), b.Count("allocation", "")}, name)
	}
}

func TestALaunchThatRequestsSaysWhatWouldFit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Node(4)
	_, err := b.service.Launch(b.ctx, b.housed(func(in *instance.LaunchInput) { in.Components[1].Intent = slice(4) }))
	refused := fault.From(err)
	require.Equal(t, []fault.Code{fault.CapacityUnavailable, fault.CapacityShort, fault.CapacityFits},
		[]fault.Code{refused.Code, refused.Reasons[0].Code, refused.Reasons[1].Code})
	require.Contains(t, refused.Message, "allocation 1 of 2")
	require.Contains(t, refused.Reasons[1].Message, "GPU_SLICE of 3 GPUs", "the head's share is taken by then")
}

func TestALaunchThatRequestsNeedsTheKeyOfCapacity(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Node(8)
	_, credential := b.ServiceAccount(b.project, authz.AppsInstanceCreate, authz.AllocationRead)
	account := b.With(credential)
	before := b.written()
	_, err := b.service.Launch(account, b.housed())
	platformtest.Refused(t, err, fault.Forbidden, "")
	require.Equal(t, before, b.written())
	_, err = b.service.Launch(account, b.launch())
	require.NoError(t, err, "its own allocations need no further key")
}
