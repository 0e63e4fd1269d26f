package member_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/change"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/service/member"
)

func (b *bundle) scale(key string, to int, allocations ...*db.Allocation) member.ScaleInput {
	in := member.ScaleInput{InstanceID: b.made.ID, ComponentKey: "worker", ScaleTo: to, DeadlineSeconds: 600,
		Reason: "a test", IdempotencyKey: key}
	for _, allocation := range allocations {
		in.AllocationIDs = append(in.AllocationIDs, allocation.ID)
	}
	return in
}

func idsOf(members []*db.Member) (list []ids.ID) {
	for _, one := range members {
		list = append(list, one.ID)
	}
	return list
}

func TestScalingUpIsOneAdditionOfWhatIsMissing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	plan, err := b.service.PlanScale(b.admin, b.scale("", 5, b.one))
	require.NoError(t, err)
	require.Equal(t, []any{true, lifecycle.MembersAdd, 2}, []any{plan.Allowed, plan.Kind, len(plan.Members)})
	require.JSONEq(t, `{"components": [{"key": "worker", "count": 2}], "desired": {"worker": 5}}`, string(plan.Change))
	in := b.scale("k", 5, b.one)
	in.PlanHash = plan.Hash
	scaled, err := b.service.Scale(b.admin, in)
	require.NoError(t, err)
	require.Len(t, scaled.Added, 2)
	require.Empty(t, scaled.Removed)
	op := b.operation(scaled.Operation.ID)
	require.Equal(t, []any{lifecycle.MembersAdd, idsOf(scaled.Added)}, []any{op.Kind, op.Targets})
	require.Equal(t, 1, b.Count("audit_entry",
		"allowed AND action = 'scaleComponent' AND permission_key = 'apps.member.add' AND after -> 'desired' ->> "+
			"'worker' = '5'"))

	before := b.written()
	again, err := b.service.Scale(b.admin, in)
	require.NoError(t, err, "the same key is the same change, though nothing is missing any more")
	require.Equal(t, []any{op.ID, idsOf(scaled.Added)}, []any{again.Operation.ID, idsOf(again.Added)})
	_, err = b.service.Scale(b.admin, b.scale("k2", 5, b.one))
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.count")
	require.Equal(t, before, b.written())
}

func TestScalingDownIsOneRemovalOfWhoServesLeast(t *testing.T) {
	t.Parallel()
	b := setup(t, roomy)
	b.SQL(`UPDATE member SET health = 'UNHEALTHY' WHERE id = $1`, b.members[0].ID)
	plan, err := b.service.PlanScale(b.admin, b.scale("", 1))
	require.NoError(t, err)
	require.True(t, plan.Allowed)
	leaving := []ids.ID{b.members[0].ID, b.members[2].ID}
	require.Equal(t, leaving, []ids.ID{*plan.Members[0].MemberID, *plan.Members[1].MemberID},
		"the unhealthy one, then the highest index")
	require.Equal(t, []string{string(leaving[0]), string(leaving[1])}, b.adapter.Plans[0].Targets)
	require.Equal(t, adapter.MemberRemove, b.adapter.Plans[0].Kind, "what every adapter knows")
	in := b.scale("k", 1)
	in.PlanHash = plan.Hash
	scaled, err := b.service.Scale(b.admin, in)
	require.NoError(t, err)
	require.Equal(t, leaving, idsOf(scaled.Removed))
	op := b.operation(scaled.Operation.ID)
	require.Equal(t, []any{lifecycle.MemberRemove, leaving}, []any{op.Kind, op.Targets})
	require.Equal(t, 1, b.Count("instance", "roles -> 0 ->> 'desired' = '1'"))
	require.Equal(t, 2, b.Count("member", "last_operation_id = $1", op.ID))
	again, err := b.service.Scale(b.admin, in)
	require.NoError(t, err)
	require.Equal(t, []any{op.ID, leaving}, []any{again.Operation.ID, idsOf(again.Removed)})
}

// roomy lets the component shrink to none.
func roomy(document map[string]any) {
	document["components"].([]map[string]any)[0]["min"] = 0
}

func TestAPlanOfAScalingHoldsForWhomItShowed(t *testing.T) {
	t.Parallel()
	b := setup(t, roomy)
	plan, err := b.service.PlanScale(b.admin, b.scale("", 2))
	require.NoError(t, err)
	in := b.scale("k", 2)
	in.PlanHash = plan.Hash
	b.SQL(`UPDATE member SET health = 'UNHEALTHY' WHERE id = $1`, b.members[1].ID)
	before := b.written()
	_, err = b.service.Scale(b.admin, in)
	platformtest.Refused(t, err, fault.PlanStale, "input.planHash")
	require.NotContains(t, fault.From(err).Message, "another request")
	in.ScaleTo = 1
	_, err = b.service.Scale(b.admin, in)
	require.Contains(t, fault.From(err).Message, "another request")
	require.Equal(t, before, b.written())
}

func TestScalingsThatCannotBeAreRefusedAndWriteNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	viewer := b.As(b.User(b.tenant, platformtest.In(authz.ProjectViewer, b.project)))
	before := b.written()
	for name, c := range map[string]struct {
		change func(*member.ScaleInput)
		code   fault.Code
		path   string
	}{
		"too few":  {func(in *member.ScaleInput) { in.ScaleTo = 1 }, fault.LimitExceeded, "input.count"},
		"too many": {func(in *member.ScaleInput) { in.ScaleTo = 6 }, fault.LimitExceeded, "input.count"},
		"negative": {func(in *member.ScaleInput) { in.ScaleTo = -1 }, fault.InvalidArgument,
			"input.count"},
		"beyond every dispatch": {func(in *member.ScaleInput) { in.ScaleTo = 1_025 }, fault.InvalidArgument,
			"input.count"},
		"no such component": {func(in *member.ScaleInput) { in.ComponentKey = "x" }, fault.InvalidArgument,
			"input.componentKey"},
		"as many as there are": {func(in *member.ScaleInput) { in.ScaleTo = 3 }, fault.FailedPrecondition,
			"input.count"},
		"no place": {func(in *member.ScaleInput) { in.AllocationIDs = nil }, fault.InvalidArgument,
			"input.allocationIds"},
		"an addition by force": {func(in *member.ScaleInput) { in.Force = true }, fault.InvalidArgument, "input.force"},
		"no such instance":     {func(in *member.ScaleInput) { in.InstanceID = "ins_x" }, fault.NotFound, ""},
	} {
		t.Run(name, func(t *testing.T) {
			in := b.scale("k", 4, b.one)
			c.change(&in)
			_, err := b.service.Scale(b.admin, in)
			platformtest.Refused(t, err, c.code, c.path)
		})
	}
	_, err := b.service.Scale(viewer, b.scale("k", 4, b.one))
	platformtest.Refused(t, err, fault.Forbidden, "")
	require.Contains(t, fault.From(err).Message, "apps.member.add")
	_, err = b.service.Scale(viewer, b.scale("k", 2))
	require.Contains(t, fault.From(err).Message, "apps.member.remove")
	require.Equal(t, before, b.written())
}

func TestScalingDownLeavesOutWhomAnotherOperationHolds(t *testing.T) {
	t.Parallel()
	b := setup(t, roomy)
	b.open(lifecycle.MemberRecover, 2)
	scaled, err := b.service.Scale(b.admin, b.scale("k", 2))
	require.NoError(t, err)
	require.Equal(t, []ids.ID{b.members[1].ID}, idsOf(scaled.Removed))
	before := b.written()
	_, err = b.service.Scale(b.admin, b.scale("k2", 0))
	platformtest.Refused(t, err, fault.Conflict, "")
	require.Equal(t, before, b.written())
}

func TestAScalingThatFailedIsTriedAgainAsAScaling(t *testing.T) {
	t.Parallel()
	b := setup(t, roomy)
	in := b.scale("k", 1)
	scaled, err := b.service.Scale(b.admin, in)
	require.NoError(t, err)
	stored := operation.PrivateOf(b.operation(scaled.Operation.ID)).Input
	b.SQL(`UPDATE operation SET state = 'RUNNING'`)
	b.SQL(`UPDATE operation SET state = 'FAILED', ended_at = now()`)
	b.SQL(`UPDATE instance SET roles = jsonb_set(roles, '{0,desired}', '3')`)
	b.stands(0, lifecycle.MemberFailed)
	again, err := b.service.Again(b.admin, lifecycle.MemberRemove,
		change.Again{RetryOf: scaled.Operation.ID, Input: stored, IdempotencyKey: "r"})
	require.NoError(t, err)
	require.Equal(t, []ids.ID{b.members[0].ID, b.members[2].ID}, b.operation(again.ID).Targets, "chosen again")
}

func TestTwoWhoScaleAtOnceComeToOneNumber(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var running sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		running.Go(func() { _, errs[i] = b.service.Scale(b.admin, b.scale(string(rune('a'+i)), 5, b.one)) })
	}
	running.Wait()
	accepted := 0
	for _, err := range errs {
		if err == nil {
			accepted++
			continue
		}
		platformtest.Refused(t, err, fault.FailedPrecondition, "input.count")
	}
	require.Equal(t, 1, accepted)
	require.Equal(t, 5, b.Count("member", ""))
}

func TestSeveralMembersAreRemovedByOneOperation(t *testing.T) {
	t.Parallel()
	b := setup(t, roomy)
	drain := b.open(lifecycle.MemberDrain, 2)
	in := member.RemoveInput{MemberIDs: []ids.ID{b.members[2].ID, b.members[0].ID}, DeadlineSeconds: 600,
		Reason: "a test", IdempotencyKey: "k"}
	plan, err := b.service.PlanRemoveMany(b.admin, in)
	require.NoError(t, err)
	require.Equal(t, []ids.ID{drain.ID}, plan.SupersedesIDs)
	require.JSONEq(t, `{"desired": {"worker": 1}}`, string(plan.Change))
	in.PlanHash = plan.Hash
	removed, err := b.service.RemoveMany(b.admin, in)
	require.NoError(t, err)
	leaving := []ids.ID{b.members[0].ID, b.members[2].ID}
	require.Equal(t, []any{leaving, leaving}, []any{idsOf(removed.Members), b.operation(removed.Operation.ID).Targets})
	require.Equal(t, 1, b.Count("audit_entry",
		"allowed AND action = 'removeMembers' AND object_id = $1 AND jsonb_array_length(before -> 'members') = 2",
		b.made.ID))
	before := b.written()
	again, err := b.service.RemoveMany(b.admin, in)
	require.NoError(t, err)
	require.Equal(t, []any{removed.Operation.ID, leaving}, []any{again.Operation.ID, idsOf(again.Members)})
	require.Equal(t, before, b.written())
}

func TestBadRemovalsOfSeveralAreRefusedAndWriteNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Instance(b.project, b.stored, lifecycle.InstanceRunning, b.allocation())
	var other ids.ID
	for _, m := range b.Ent.Member.Query().AllX(t.Context()) {
		if m.InstanceID != b.made.ID {
			other = m.ID
		}
	}
	b.stands(1, lifecycle.MemberRemoving, lifecycle.MemberRemoved)
	first := b.members[0].ID
	before := b.written()
	for name, c := range map[string]struct {
		members []ids.ID
		code    fault.Code
		path    string
	}{
		"none":                   {[]ids.ID{}, fault.InvalidArgument, "input.memberIds"},
		"no list":                {nil, fault.InvalidArgument, "input.memberIds"},
		"twice":                  {[]ids.ID{first, first}, fault.InvalidArgument, "input.memberIds.1"},
		"of another instance":    {[]ids.ID{first, other}, fault.NotFound, "input.memberIds.1"},
		"nobody":                 {[]ids.ID{first, "mem_x"}, fault.NotFound, ""},
		"removed already":        {[]ids.ID{first, b.members[1].ID}, fault.FailedPrecondition, "input.memberIds.1"},
		"more than may be taken": {[]ids.ID{first, b.members[2].ID}, fault.LimitExceeded, "input.memberIds"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := b.service.RemoveMany(b.admin, member.RemoveInput{MemberIDs: c.members, DeadlineSeconds: 600,
				IdempotencyKey: "k"})
			platformtest.Refused(t, err, c.code, c.path)
		})
	}
	require.Equal(t, before, b.written())
}

func TestAnAdapterThatChoosesSaysWhoLeaves(t *testing.T) {
	t.Parallel()
	b := setup(t, roomy)
	b.SQL(`UPDATE adapter SET description = jsonb_build_object('apps', jsonb_build_array(jsonb_build_object('slug',
		$1::text, 'choosesLeaving', true)))`,
		b.app.Slug)
	b.adapter.Plan.Chosen = []string{"mem_unknown", string(b.members[1].ID), string(b.members[0].ID)}
	plan, err := b.service.PlanScale(b.admin, b.scale("", 2))
	require.NoError(t, err)
	require.Len(t, plan.Members, 1)
	require.Equal(t, b.members[1].ID, *plan.Members[0].MemberID,
		"the first of its that is a member; the number is the caller's")
	asked := b.adapter.Plans[0]
	require.Equal(t, &adapter.Choose{ComponentKey: "worker", Count: 1}, asked.Choose)
	require.Len(t, asked.Targets, 3, "among all that may leave")
	require.Nil(t, b.adapter.Plans[1].Choose, "then it is asked what that would come to")
	in := b.scale("k", 2)
	in.PlanHash = plan.Hash
	scaled, err := b.service.Scale(b.admin, in)
	require.NoError(t, err)
	require.Equal(t, []ids.ID{b.members[1].ID}, idsOf(scaled.Removed))

	b.adapter.Plan.Chosen = nil
	plan, err = b.service.PlanScale(b.admin, b.scale("", 1))
	require.NoError(t, err)
	require.Equal(t, b.members[2].ID, *plan.Members[0].MemberID, "without a choice the platform's rule holds")
}

func TestAScalingWithoutAPlaceRequestsWhatTheLaunchIntended(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Node(4)
	b.SQL(
		`UPDATE instance SET capacity_intent = '{"worker": {"Shape": "GPU_SLICE", "GPUCount": 3, "SKU": "", "Region": ""}}'`)
	scaled, err := b.service.Scale(b.admin, b.scale("k", 4))
	require.NoError(t, err)
	require.Equal(t, 1, b.Count("allocation", "created_by_operation_id = $1 AND shape = 'GPU_SLICE' AND gpu_count = 3",
		scaled.Operation.ID))
	before := b.written()
	_, err = b.service.Scale(b.admin, b.scale("k2", 5))
	platformtest.Refused(t, err, fault.CapacityUnavailable, "input.intent")
	refused := fault.From(err)
	require.Equal(t, []fault.Code{fault.CapacityShort, fault.CapacityFits},
		[]fault.Code{refused.Reasons[0].Code, refused.Reasons[1].Code})
	require.Contains(t, refused.Message,
		"a share of 3 GPUs is requested, and the largest share that is free on one node is 1 GPU")
	require.Contains(t, refused.Reasons[1].Message, "GPU_SLICE of 1 GPU")
	require.Equal(t, before, b.written())
}
