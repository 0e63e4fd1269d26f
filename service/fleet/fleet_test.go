package fleet_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/nodehealth"
	"github.com/gpuaas/app-platform/domain/policy"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/fleet"
	"github.com/gpuaas/app-platform/service/kit/capacity"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/node"
)

// verbs keeps the service's fields below those of the kit, which have the same names.
type verbs struct{ *fleet.Service }

// bench is a platform with an operator.
type bench struct {
	*platformtest.Kit
	verbs
	agents   *node.Service
	t        *testing.T
	operator context.Context
}

func newBench(t *testing.T) *bench {
	t.Helper()
	kit := platformtest.New(t)
	return &bench{Kit: kit, verbs: verbs{&fleet.Service{DB: kit.DB}}, agents: &node.Service{DB: kit.DB, Hub: kit.Hub},
		t:        t,
		operator: kit.As(kit.Operator())}
}

// places reports whether a new allocation of a GPU finds a node.
func (b *bench) places(project *db.Project) bool {
	b.t.Helper()
	gpus, found := 1, false
	err := b.Kit.DB.Write(b.operator, func(ctx context.Context, t *tx.Tx) error {
		_, err := capacity.Place(ctx, t, capacity.Draft{ID: ids.New(ids.Allocation), Project: project,
			Want: capacity.Want{Shape: lifecycle.ShapeGPUSlice, GPUCount: &gpus}, Policy: policy.Merge()})
		found = err == nil
		if err != nil && !fault.Is(err, fault.CapacityUnavailable) {
			return err
		}
		return fault.New(fault.Conflict, "taken back")
	})
	require.True(b.t, fault.Is(err, fault.Conflict), "%v", err)
	return found
}

func of(node *db.ComputeNode, reason string) fleet.OperateInput {
	return fleet.OperateInput{NodeID: node.ID, Reason: reason}
}

func TestACordonedNodeTakesNoNewAllocationUntilItIsUncordoned(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	project := b.Project(b.Tenant())
	one, _ := b.Node(2)
	require.True(t, b.places(project))
	got, err := b.Cordon(b.operator, of(one, "a fan is loud"))
	require.NoError(t, err)
	require.Equal(t, []any{true, "a fan is loud"}, []any{got.Cordoned, got.CordonReason})
	require.NotNil(t, got.CordonedAt)
	require.False(t, b.places(project))
	_, err = b.Cordon(b.operator, of(one, "again"))
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.nodeId")
	got, err = b.Uncordon(b.operator, of(one, ""))
	require.NoError(t, err)
	require.Equal(t, []any{false, "", (*time.Time)(nil)}, []any{got.Cordoned, got.CordonReason, got.CordonedAt})
	require.True(t, b.places(project))
	_, err = b.Uncordon(b.operator, of(one, ""))
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.nodeId")
	require.Equal(t, 2, b.Count("audit_entry", "action IN ('cordonNode', 'uncordonNode') AND object_id = $1", one.ID))
}

func TestABadConditionKeepsNewMembersAway(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	project := b.Project(b.Tenant())
	one, credential := b.Node(2)
	beat := func(state nodehealth.State) *db.ComputeNode {
		out, err := b.agents.Heartbeat(b.With(credential),
			node.HeartbeatInput{AgentVersion: "1", BootID: "b", Conditions: []nodehealth.Condition{
				{Name: "gpu", State: state, Message: "an error"}, {Name: "disk", State: nodehealth.Good}}})
		require.NoError(t, err)
		return out
	}
	for state, takes := range map[nodehealth.State]bool{nodehealth.Good: true, nodehealth.Warning: true,
		nodehealth.Unknown: false,
		nodehealth.Bad:     false} {
		got := beat(state)
		require.Equal(t, "disk", got.Conditions[0].Name)
		require.Equal(t, takes, b.places(project), state)
	}
	since := beat(nodehealth.Bad).Conditions[1].Since
	require.Equal(t, since, beat(nodehealth.Bad).Conditions[1].Since, "the same state keeps its time")
	again, err := b.agents.Heartbeat(b.With(credential), node.HeartbeatInput{AgentVersion: "1", BootID: "c"})
	require.NoError(t, err)
	require.Len(t, again.Conditions, 2, "nothing said changes nothing")
	require.NotNil(t, again.BootedAt, "another boot is noted")
	view, err := b.Overview(b.operator)
	require.NoError(t, err)
	require.Equal(t, one.ID, view.Troubled[0].ID)
	require.Equal(t, []int{1, 1, 0, 2, 0, 0}, []int{view.Capacity[0].Nodes, view.Capacity[0].Online,
		view.Capacity[0].Taking,
		view.Capacity[0].GPUs, view.Capacity[0].GPUsRented, view.Capacity[0].GPUsFree})
}

func TestARetiredNodeIsForGoodAndItsNameIsFreeOnceItIsDeleted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	one, credential := b.Node(2)
	rented := b.Allocation(b.Project(b.Tenant()), one)
	_, err := b.Retire(b.operator, fleet.RetireInput{NodeID: one.ID})
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.nodeId")
	_, err = b.Retire(b.operator, fleet.RetireInput{NodeID: one.ID, Lost: true, Reason: "burnt"})
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.lost")
	_, err = b.Delete(b.operator, of(one, ""))
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.nodeId")
	b.SQL(`UPDATE allocation SET released_at = now(), status = 'RELEASING' WHERE id = $1`, rented.ID)
	got, err := b.Retire(b.operator, fleet.RetireInput{NodeID: one.ID, Reason: "sold"})
	require.NoError(t, err)
	require.Equal(t, lifecycle.NodeRetired, got.Status)
	_, err = b.agents.Heartbeat(b.With(credential), node.HeartbeatInput{AgentVersion: "1", BootID: "b"})
	platformtest.Refused(t, err, fault.Unauthenticated)
	for _, verb := range []func(context.Context, fleet.OperateInput) (*db.ComputeNode, error){b.Cordon, b.Uncordon} {
		_, err := verb(b.operator, of(one, ""))
		platformtest.Refused(t, err, fault.FailedPrecondition, "input.nodeId")
	}
	_, err = b.agents.CreateEnrolment(b.operator, node.EnrolmentInput{Name: one.Name, TTLMinutes: 5})
	platformtest.Refused(t, err, fault.Conflict, "input.name")
	_, err = b.Delete(b.operator, of(one, ""))
	require.NoError(t, err)
	_, err = b.agents.CreateEnrolment(b.operator, node.EnrolmentInput{Name: one.Name, TTLMinutes: 5})
	require.NoError(t, err, "the name is free")
	list, err := b.agents.List(b.operator, page.Args{First: 5})
	require.NoError(t, err)
	require.Empty(t, list.Rows)
	_, err = b.Delete(b.operator, of(one, ""))
	platformtest.Refused(t, err, fault.NotFound)
}

func TestADrainIsTheWishOfANodeAndIsHastenedByForce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	one, _ := b.Node(2)
	for path, in := range map[string]fleet.DrainInput{
		"input.deadlineSeconds": {NodeID: one.ID, DeadlineSeconds: 5},
		"input.reason":          {NodeID: one.ID, Force: true},
	} {
		_, err := b.Drain(b.operator, in)
		platformtest.Refused(t, err, fault.InvalidArgument, path)
	}
	require.Zero(t, b.Count("compute_node", "cordoned"), "nothing is written")
	got, err := b.Drain(b.operator, fleet.DrainInput{NodeID: one.ID, Reason: "firmware"})
	require.NoError(t, err)
	require.True(t, got.Cordoned)
	require.Equal(t, []any{"firmware", 3600, false}, []any{got.Drain.Reason, got.Drain.DeadlineSeconds,
		got.Drain.Force})
	_, err = b.Drain(b.operator, fleet.DrainInput{NodeID: one.ID})
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.nodeId")
	hastened, err := b.Drain(b.operator, fleet.DrainInput{NodeID: one.ID, Force: true, Reason: "now"})
	require.NoError(t, err)
	require.True(t, hastened.Drain.Force)
	require.Equal(t, got.Drain.Since, hastened.Drain.Since)
	ended, err := b.Uncordon(b.operator, of(one, ""))
	require.NoError(t, err)
	require.True(t, ended.Drain.Ending, "members that were drained are to take work again")
}

func TestOnlyThePlatformsStaffActOnNodesAndSeeWhoLivesThere(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tenant := b.Tenant()
	project := b.Project(tenant)
	one, _ := b.Node(2)
	_, stored := b.Launchable(project, "apps")
	instance := b.Instance(project, stored, lifecycle.InstanceRunning, b.Allocation(project, one))
	admin := b.As(b.User(tenant, platformtest.Across(authz.TenantAdmin, tenant)))
	stranger := b.As(b.User(b.Tenant()))
	for who, ctx := range map[fault.Code]context.Context{fault.Forbidden: admin, fault.NotFound: stranger} {
		for _, err := range []error{
			second(b.Cordon(ctx, of(one, ""))), second(b.Uncordon(ctx, of(one, ""))),
			second(b.Delete(ctx, of(one, ""))),
			second(b.Drain(ctx, fleet.DrainInput{NodeID: one.ID})),
			second(b.Retire(ctx, fleet.RetireInput{NodeID: one.ID})),
		} {
			require.True(t, fault.Is(err, who) || fault.Is(err, fault.NotFound), "%v", err)
		}
		_, err := b.Tenancy(ctx, one.ID, "")
		require.Error(t, err)
		_, err = b.Overview(ctx)
		require.Error(t, err)
	}
	require.Zero(t, b.Count("compute_node", "cordoned OR drain IS NOT NULL OR status = 'RETIRED'"))
	found, err := b.Tenancy(b.operator, one.ID, "")
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, []any{instance.ID, tenant.Slug, project.Slug, lifecycle.MemberActive}, []any{found[0].InstanceID,
		found[0].Tenant, found[0].Project, found[0].Status})
}

func second[T any](_ T, err error) error { return err }
