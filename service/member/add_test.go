package member_test

import (
	"encoding/json"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/service/member"
)

func TestAddedMembersArePendingOnTheirAllocationsWithNumbersNeverUsed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.stands(2, lifecycle.MemberRemoving, lifecycle.MemberRemoved)
	free := b.allocation()
	added, err := b.service.Add(b.admin, b.add("k", 2, free, b.one))
	require.NoError(t, err)
	require.Len(t, added.Members, 2)
	for i, m := range added.Members {
		require.Equal(t, []any{lifecycle.MemberPending, "worker", 3 + i, added.Operation.ID},
			[]any{m.Status, m.ComponentKey, m.Ordinal, *m.LastOperationID})
	}
	require.Equal(t, []ids.ID{free.ID, b.one.ID}, []ids.ID{*added.Members[0].AllocationID,
		*added.Members[1].AllocationID},
		"in turn")
	require.Equal(t, *free.NodeID, *added.Members[0].NodeID)
	require.Equal(t, 1, b.Count("allocation",
		"id = $1 AND instance_id = $2 AND created_by_operation_id IS NULL", free.ID, b.made.ID))
	require.Equal(t, 1, b.Count("instance",
		"roles -> 0 ->> 'desired' = '5' AND roles -> 0 ->> 'summary' = '2 of 5 active' AND last_operation_id = $1",
		added.Operation.ID))

	op := b.operation(added.Operation.ID)
	require.Equal(t, []any{lifecycle.MembersAdd, lifecycle.OperationPending, "a test", false, lifecycle.DeadlineFail},
		[]any{op.Kind, op.State, op.Reason, op.Force, op.OnDeadline})
	require.Equal(t, []ids.ID{added.Members[0].ID, added.Members[1].ID}, op.Targets)
	var change map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(op.DesiredChange, &change))
	require.JSONEq(t, `[{"key":"worker","count":2}]`, string(change["components"]))
	require.Len(t, change, 2, "the contract's change and the platform's part")
	require.False(t, operation.PrivateOf(op).KeepFailed)
	require.Equal(t, 1, b.Count("app_instance_event", "type = $1 AND operation_id = $2",
		lifecycle.EventOperationAccepted, op.ID))
	require.Equal(t, 1, b.Count("audit_entry",
		"allowed AND action = 'addMembers' AND permission_key = 'apps.member.add' AND reason = 'a test' AND after -> "+
			"'desired' ->> 'worker' = '5'"))
}

func TestCapacityAskedForAlongIsTheOperationsOwn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Node(4)
	gpus := 2
	in := b.add("k", 2)
	in.Intent, in.KeepFailed = &member.Intent{Shape: lifecycle.ShapeGPUSlice, GPUCount: &gpus}, true
	added, err := b.service.Add(b.admin, in)
	require.NoError(t, err)
	require.Equal(t, 2, b.Count("allocation",
		"created_by_operation_id = $1 AND instance_id = $2 AND status = 'READY' AND gpu_count = 2", added.Operation.ID,
		b.made.ID))
	private := operation.PrivateOf(b.operation(added.Operation.ID))
	require.True(t, private.KeepFailed)
	require.Equal(t, []ids.ID{*added.Members[0].AllocationID, *added.Members[1].AllocationID},
		private.CreatedAllocations)
	require.Equal(t, 1, b.Count("audit_entry", "allowed AND permission_key = 'allocation.create' AND object_id = $1",
		b.project.ID))
	for _, told := range []lifecycle.EventType{lifecycle.EventAllocationRequested, lifecycle.EventAllocationReady} {
		require.Equal(t, 2, b.Count("app_instance_event", "type = $1 AND payload ->> 'gpuCount' = '2'", told))
	}

	before := b.written()
	in = b.add("k2", 1)
	in.Intent = &member.Intent{Shape: lifecycle.ShapeBaremetal}
	_, err = b.service.Add(b.admin, in)
	platformtest.Refused(t, err, fault.CapacityUnavailable, "input.intent")
	plan, err := b.service.PlanAdd(b.admin, in)
	require.NoError(t, err)
	require.False(t, plan.Allowed)
	require.Equal(t, before, b.written())
}

func TestAnAdditionIsAcceptedOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	in := b.add("k", 1, b.one)
	first, err := b.service.Add(b.admin, in)
	require.NoError(t, err)
	before := b.written()
	again, err := b.service.Add(b.admin, in)
	require.NoError(t, err)
	require.Equal(t, []ids.ID{first.Operation.ID, first.Members[0].ID},
		[]ids.ID{again.Operation.ID, again.Members[0].ID})
	in.Count = 2
	_, err = b.service.Add(b.admin, in)
	platformtest.Refused(t, err, fault.IdempotencyKeyReused, "input.idempotencyKey")
	require.Equal(t, before, b.written())
}

func TestBadAdditionsAreRefusedAndWriteNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	other := b.Instance(b.project, b.stored, lifecycle.InstanceRunning, b.allocation())
	stranger := b.Project(b.tenant)
	foreign := b.Project(b.Tenant())
	node, _ := b.Node(1)
	elsewhere, abroad := b.Allocation(stranger, node), b.Allocation(foreign, node)
	releasing, taken := b.allocation(), b.Ent.Member.Query().AllX(t.Context())
	b.SQL(`UPDATE allocation SET status = 'RELEASING' WHERE id = $1`, releasing.ID)
	var theirs ids.ID
	for _, m := range taken {
		if m.InstanceID == other.ID {
			theirs = *m.AllocationID
		}
	}
	half := 70
	before := b.written()
	for name, c := range map[string]struct {
		change func(*member.AddInput)
		code   fault.Code
		path   string
	}{
		"nobody":            {func(in *member.AddInput) { in.Count = 0 }, fault.InvalidArgument, "input.count"},
		"too many at once":  {func(in *member.AddInput) { in.Count = 65 }, fault.InvalidArgument, "input.count"},
		"beyond the bounds": {func(in *member.AddInput) { in.Count = 3 }, fault.LimitExceeded, "input.count"},
		"unknown component": {func(in *member.AddInput) { in.ComponentKey = "pump" }, fault.InvalidArgument,
			"input.componentKey"},
		"nowhere": {func(in *member.AddInput) { in.AllocationIDs = nil }, fault.InvalidArgument,
			"input.allocationIds"},
		"twice": {func(in *member.AddInput) { in.Count, in.AllocationIDs = 2, []ids.ID{b.one.ID, b.one.ID} },
			fault.InvalidArgument, "input.allocationIds.1"},
		"more than members": {func(in *member.AddInput) { in.AllocationIDs = []ids.ID{b.one.ID, b.two.ID} },
			fault.InvalidArgument, "input.allocationIds"},
		"both": {func(in *member.AddInput) { in.Intent = &member.Intent{Shape: lifecycle.ShapeBaremetal} },
			fault.InvalidArgument, "input.intent"},
		"bad intent": {func(in *member.AddInput) {
			in.AllocationIDs, in.Intent = nil, &member.Intent{Shape: lifecycle.ShapeGPUSlice, GPUCount: &half}
		}, fault.InvalidArgument, "input.intent.gpuCount"},
		"another project's": {func(in *member.AddInput) { in.AllocationIDs = []ids.ID{elsewhere.ID} }, fault.NotFound,
			"input.allocationIds.0"},
		"another tenant's": {func(in *member.AddInput) { in.AllocationIDs = []ids.ID{abroad.ID} }, fault.NotFound,
			"input.allocationIds.0"},
		"none": {func(in *member.AddInput) { in.AllocationIDs = []ids.ID{ids.New(ids.Allocation)} },
			fault.NotFound, "input.allocationIds.0"},
		"not ready": {func(in *member.AddInput) { in.AllocationIDs = []ids.ID{releasing.ID} },
			fault.FailedPrecondition, "input.allocationIds.0"},
		"another instance's": {func(in *member.AddInput) { in.AllocationIDs = []ids.ID{theirs} }, fault.Conflict,
			"input.allocationIds.0"},
		"deadline": {func(in *member.AddInput) { in.DeadlineSeconds = 1 }, fault.InvalidArgument,
			"input.deadlineSeconds"},
		"key": {func(in *member.AddInput) { in.IdempotencyKey = "" }, fault.InvalidArgument,
			"input.idempotencyKey"},
		"plan":        {func(in *member.AddInput) { in.PlanHash = "not the hash" }, fault.PlanStale, "input.planHash"},
		"no instance": {func(in *member.AddInput) { in.InstanceID = ids.New(ids.Instance) }, fault.NotFound, ""},
	} {
		in := b.add("k", 1, b.one)
		c.change(&in)
		_, err := b.service.Add(b.admin, in)
		require.Error(t, err, name)
		platformtest.Refused(t, err, c.code, c.path)
	}
	require.Equal(t, before, b.written())
	b.SQL(`UPDATE instance SET status = 'STOPPING' WHERE id = $1`, b.made.ID)
	before = b.written()
	_, err := b.service.Add(b.admin, b.add("k", 1, b.one))
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.instanceId")
	require.Equal(t, before, b.written())
}

func TestOnlyWhoMayAddsMembers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Node(4)
	viewer := b.As(b.User(b.tenant, platformtest.In(authz.ProjectViewer, b.project)))
	stranger := b.As(b.User(b.Tenant()))
	_, key := b.ServiceAccount(b.project, authz.AppsMemberAdd, authz.AllocationRead, authz.ProjectRead)
	before := b.written()
	_, err := b.service.Add(viewer, b.add("k", 1, b.one))
	platformtest.Refused(t, err, fault.Forbidden, "")
	_, err = b.service.Add(stranger, b.add("k", 1, b.one))
	platformtest.Refused(t, err, fault.NotFound, "")
	in := b.add("k", 1)
	in.Intent = &member.Intent{Shape: lifecycle.ShapeBaremetal}
	_, err = b.service.Add(b.With(key), in)
	platformtest.Refused(t, err, fault.Forbidden, "")
	require.Contains(t, fault.From(err).Message, "allocation.create")
	_, err = b.service.PlanAdd(b.With(key), in)
	platformtest.Refused(t, err, fault.Forbidden, "")
	require.Equal(t, before, b.written())
	_, err = b.service.Add(b.With(key), b.add("k", 1, b.one))
	require.NoError(t, err)
}

func TestAnAppThatStaysInOneAllocationIsNotSpread(t *testing.T) {
	t.Parallel()
	b := setup(t, func(document map[string]any) {
		document["compatibility"].(map[string]any)["network_span"] = "allocation"
	})
	b.SQL(`UPDATE member SET allocation_id = $1, node_id = $2`, b.one.ID, b.one.NodeID)
	b.SQL(`UPDATE allocation SET instance_id = NULL WHERE id = $1`, b.two.ID)
	before := b.written()
	_, err := b.service.Add(b.admin, b.add("k", 1, b.two))
	platformtest.Refused(t, err, fault.Incompatible, "input.allocationIds")
	require.Equal(t, fault.NetworkSpanUnsupported, fault.From(err).Reasons[0].Code)
	require.Equal(t, before, b.written())
	_, err = b.service.Add(b.admin, b.add("k", 1, b.one))
	require.NoError(t, err)
}

func TestOfTwoAdditionsAtOnceTheQuotaLetsOneWin(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.SQL(`UPDATE project SET max_members = 4 WHERE id = $1`, b.project.ID)
	const callers = 4
	errs := make([]error, callers)
	var running sync.WaitGroup
	for i := range callers {
		running.Go(func() { _, errs[i] = b.service.Add(b.admin, b.add(string(rune('a'+i)), 1, b.one)) })
	}
	running.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
			continue
		}
		platformtest.Refused(t, err, fault.LimitExceeded, "input.count")
	}
	require.Equal(t, 1, won)
	require.Equal(t, 4, b.Count("member", ""))
}

func TestTheQuotaOfGPUsBoundsWhatIsAskedForAlong(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Node(4)
	b.SQL(`UPDATE project SET max_gpus = 10 WHERE id = $1`, b.project.ID)
	in := b.add("k", 1)
	in.Intent = &member.Intent{Shape: lifecycle.ShapeBaremetal}
	before := b.written()
	_, err := b.service.Add(b.admin, in)
	platformtest.Refused(t, err, fault.LimitExceeded, "input.intent")
	require.Equal(t, before, b.written())
	two := 2
	in.Intent = &member.Intent{Shape: lifecycle.ShapeGPUSlice, GPUCount: &two}
	_, err = b.service.Add(b.admin, in)
	require.NoError(t, err)
}
