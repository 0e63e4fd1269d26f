package retry_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbmember "github.com/gpuaas/app-platform/ent/generated/db/member"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/service/member"
	"github.com/gpuaas/app-platform/service/retry"
)

// bundle is a running instance of two workers on one whole node.
type bundle struct {
	*platformtest.Kit
	t         *testing.T
	tenant    *db.Tenant
	project   *db.Project
	admin     context.Context
	one       *db.Allocation
	made      *db.Instance
	members   []*db.Member
	verbs     *member.Service
	instances *instance.Service
	service   *retry.Service
}

func setup(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{Kit: platformtest.New(t), t: t}
	b.tenant = b.Tenant()
	b.project = b.Project(b.tenant)
	b.admin = b.As(b.User(b.tenant, platformtest.In(authz.ProjectAdmin, b.project)))
	_, stored := b.Launchable(b.project, "apps")
	node, _ := b.Node(4)
	b.one = b.Allocation(b.project, node)
	b.made = b.Instance(b.project, stored, lifecycle.InstanceRunning, b.one, b.one)
	b.members = b.Ent.Member.Query().Order(db.Asc(dbmember.FieldOrdinal)).AllX(t.Context())
	b.verbs, b.instances = &member.Service{DB: b.DB}, &instance.Service{DB: b.DB}
	b.service = &retry.Service{DB: b.DB, Members: b.verbs.Again, Instances: b.instances.Again,
		PlanMembers: b.verbs.PlanAgain, PlanInstances: b.instances.PlanAgain}
	return b
}

func (b *bundle) ended(op *operation.View, state lifecycle.OperationState, code string) {
	b.t.Helper()
	b.SQL(`UPDATE operation SET state = 'RUNNING' WHERE id = $1`, op.ID)
	if state == lifecycle.OperationCanceled {
		b.SQL(`UPDATE operation SET state = 'CANCELING' WHERE id = $1`, op.ID)
	}
	b.SQL(`UPDATE operation SET state = $2, error_code = $3, ended_at = now() WHERE id = $1`, op.ID, state, code)
}

func of(op *operation.View, key string) retry.Input {
	return retry.Input{OperationID: op.ID, IdempotencyKey: key}
}

func TestARetryIsANewOperationOfTheSameChange(t *testing.T) {
	t.Parallel()
	b := setup(t)
	drained, err := b.verbs.Drain(b.admin, member.Input{MemberID: b.members[0].ID, Force: true,
		OnDeadline:      lifecycle.DeadlineForce,
		DeadlineSeconds: 120, Reason: "the rack moves", IdempotencyKey: "same"})
	require.NoError(t, err)
	b.ended(drained.Operation, lifecycle.OperationFailed, "ADAPTER_FAILED")
	in := of(drained.Operation, "same")
	again, err := b.service.Retry(b.admin, in)
	require.NoError(t, err, "keys of other verbs are no matter")
	require.NotEqual(t, drained.Operation.ID, again.ID)
	stored := b.Ent.Operation.GetX(t.Context(), again.ID)
	require.Equal(t, []any{lifecycle.MemberDrain, drained.Operation.ID, []ids.ID{b.members[0].ID}, true,
		lifecycle.DeadlineForce, "the rack moves"},
		[]any{stored.Kind, *stored.RetryOf, stored.Targets, stored.Force, stored.OnDeadline, stored.Reason})
	require.InDelta(t, 120, stored.Deadline.Sub(stored.CreatedAt).Seconds(), 1)
	require.Equal(t, 1, b.Count("audit_entry",
		"allowed AND action = 'retryOperation' AND permission_key = 'apps.node.operate' AND after ->> 'retryOf' = $1",
		drained.Operation.ID))

	repeated, err := b.service.Retry(b.admin, in)
	require.NoError(t, err)
	require.Equal(t, again.ID, repeated.ID)
	_, err = b.service.Retry(b.admin, of(drained.Operation, "other"))
	platformtest.Refused(t, err, fault.Conflict, "")
	require.Contains(t, fault.From(err).Message, string(again.ID))

	b.ended(again, lifecycle.OperationCanceled, "CANCELED")
	longer := 300
	third, err := b.service.Retry(b.admin, retry.Input{OperationID: again.ID, DeadlineSeconds: &longer,
		Reason: "once more", IdempotencyKey: "third"})
	require.NoError(t, err, "a retry can be tried again")
	require.Equal(t, "once more", third.Reason)
	require.InDelta(t, 300, third.Deadline.Sub(third.CreatedAt).Seconds(), 1)
}

// A retry's plan is that of the change, with its force and deadline; its hash holds for the retry.
func TestARetryIsWhatItsPlanShowed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	drained, err := changed(b.verbs.Drain(b.admin, member.Input{MemberID: b.members[0].ID, Force: true,
		DeadlineSeconds: 120,
		Reason:          "the rack moves", IdempotencyKey: "k"}))
	require.NoError(t, err)
	_, err = b.service.Plan(b.admin, retry.Input{OperationID: drained.ID})
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.operationId")
	b.ended(drained, lifecycle.OperationFailed, "ADAPTER_FAILED")
	before := b.Count("operation", "")
	plan, err := b.service.Plan(b.admin, retry.Input{OperationID: drained.ID})
	require.NoError(t, err)
	require.Equal(t, []any{lifecycle.MemberDrain, true, true, 120},
		[]any{plan.Kind, plan.Allowed, plan.Force, plan.DeadlineSeconds})
	require.Equal(t, before, b.Count("operation", ""))

	in := of(drained, "r")
	in.PlanHash = plan.Hash
	longer := 300
	in.DeadlineSeconds = &longer
	_, err = b.service.Retry(b.admin, in)
	platformtest.Refused(t, err, fault.PlanStale, "input.planHash")
	require.Equal(t, before, b.Count("operation", ""))
	in.DeadlineSeconds = nil
	_, err = b.service.Retry(b.admin, in)
	require.NoError(t, err)
	viewer := b.As(b.User(b.tenant, platformtest.In(authz.ProjectViewer, b.project)))
	_, err = b.service.Plan(viewer, retry.Input{OperationID: drained.ID})
	platformtest.Refused(t, err, fault.Forbidden, "")
}

func TestAnAdditionThatWasUndoneMakesItsMembersAnew(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Node(4)
	added, err := b.verbs.Add(b.admin, member.AddInput{InstanceID: b.made.ID, ComponentKey: "worker", Count: 1,
		KeepFailed: true,
		Intent:     &member.Intent{Shape: lifecycle.ShapeBaremetal}, DeadlineSeconds: 60, IdempotencyKey: "k"})
	require.NoError(t, err)
	first := added.Members[0]
	b.ended(added.Operation, lifecycle.OperationFailed, "TASK_FAILED")
	b.SQL(`UPDATE member SET status = 'FAILED' WHERE id = $1`, first.ID)
	b.SQL(`UPDATE member SET status = 'REMOVING' WHERE id = $1`, first.ID)
	b.SQL(`UPDATE member SET status = 'REMOVED' WHERE id = $1`, first.ID)
	b.SQL(`UPDATE allocation SET status = 'RELEASING' WHERE id = $1`, first.AllocationID)
	b.SQL(`UPDATE allocation SET status = 'RELEASED', released_at = now(), instance_id = NULL WHERE id = $1`,
		first.AllocationID)
	again, err := b.service.Retry(b.admin, of(added.Operation, "r"))
	require.NoError(t, err)
	stored := b.Ent.Operation.GetX(t.Context(), again.ID)
	require.Len(t, stored.Targets, 1)
	require.NotEqual(t, first.ID, stored.Targets[0])
	private := operation.PrivateOf(stored)
	require.True(t, private.KeepFailed)
	require.Equal(t, 1, b.Count("member", "id = $1 AND status = 'PENDING' AND ordinal = 3 AND allocation_id = $2",
		stored.Targets[0], private.CreatedAllocations[0]))
}

// An addition never clashes with another, so nothing but the retried operation itself can refuse the second retry.
func TestAnAdditionIsRetriedOnceAtATime(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Node(4)
	b.Node(4)
	add := member.AddInput{InstanceID: b.made.ID, ComponentKey: "worker", Count: 1,
		Intent: &member.Intent{Shape: lifecycle.ShapeBaremetal}, DeadlineSeconds: 60, IdempotencyKey: "k"}
	added, err := b.verbs.Add(b.admin, add)
	require.NoError(t, err)
	first := added.Members[0]
	b.ended(added.Operation, lifecycle.OperationFailed, "TASK_FAILED")
	for _, status := range []lifecycle.MemberStatus{lifecycle.MemberFailed, lifecycle.MemberRemoving,
		lifecycle.MemberRemoved} {
		b.SQL(`UPDATE member SET status = $2 WHERE id = $1`, first.ID, status)
	}
	again, err := b.service.Retry(b.admin, of(added.Operation, "one"))
	require.NoError(t, err)
	members, operations := b.Count("member", "true"), b.Count("operation", "true")
	for _, state := range []lifecycle.OperationState{lifecycle.OperationRunning, lifecycle.OperationSucceeded} {
		b.SQL(`UPDATE operation SET state = $2 WHERE id = $1 AND state <> $2`, again.ID, state)
		_, err = b.service.Retry(b.admin, of(added.Operation, "two-"+string(state)))
		platformtest.Refused(t, err, fault.Conflict, "input.operationId")
		require.Contains(t, fault.From(err).Message, string(again.ID))
	}
	require.Equal(t, []int{members, operations}, []int{b.Count("member", "true"), b.Count("operation", "true")})
}

func TestEveryKindOfMemberAndInstanceIsAskedAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	on := member.Input{MemberID: b.members[0].ID, DeadlineSeconds: 60, Reason: "a test", IdempotencyKey: "k"}
	calls := map[lifecycle.OperationKind]func() (*operation.View, error){
		lifecycle.MemberCordon: func() (*operation.View, error) { return changed(b.verbs.Cordon(b.admin, on)) },
		lifecycle.MemberLabel: func() (*operation.View, error) {
			return changed(b.verbs.Label(b.admin, member.LabelInput{Input: on, Labels: []byte(`{"a":"b"}`)}))
		},
		lifecycle.MemberReplace: func() (*operation.View, error) {
			return changed(b.verbs.Replace(b.admin, member.ReplaceInput{Input: on, AllocationID: b.one.ID}))
		},
		lifecycle.MemberRemove: func() (*operation.View, error) { return changed(b.verbs.Remove(b.admin, on)) },
		lifecycle.InstanceUpgrade: func() (*operation.View, error) {
			started, err := b.instances.Upgrade(b.admin, instance.UpgradeInput{InstanceID: b.made.ID,
				Config: []byte(`{"size": 9}`), DeadlineSeconds: 60, IdempotencyKey: "k"})
			if err != nil {
				return nil, err
			}
			return started.Operation, nil
		},
	}
	for kind, call := range calls {
		op, err := call()
		require.NoError(t, err, kind)
		b.ended(op, lifecycle.OperationFailed, "X")
		b.SQL(`UPDATE instance SET roles = jsonb_set(roles, '{0,desired}', '2')`) // as a worker restores it
		again, err := b.service.Retry(b.admin, of(op, string(kind)))
		require.NoError(t, err, kind)
		require.Equal(t, []any{kind, op.ID}, []any{again.Kind, *again.RetryOf})
		require.Equal(t, withoutReplacement(t, op), withoutReplacement(t, again), kind)
		b.ended(again, lifecycle.OperationFailed, "X")
		b.SQL(`UPDATE instance SET roles = jsonb_set(roles, '{0,desired}', '2')`)
	}
}

func changed(c *member.Changed, err error) (*operation.View, error) {
	if err != nil {
		return nil, err
	}
	return c.Operation, nil
}

// withoutReplacement returns the verb's input, as the operation keeps it.
func withoutReplacement(t *testing.T, op *operation.View) string {
	t.Helper()
	input := operation.PrivateOf(op.Operation).Input
	require.NotEmpty(t, input)
	return string(input)
}

func TestRetriesThatCannotBeAreRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	at := func(kind lifecycle.OperationKind, state lifecycle.OperationState) *operation.View {
		return &operation.View{Operation: b.Operation(b.made, kind, state)}
	}
	superseded := at(lifecycle.MemberDrain, lifecycle.OperationCanceled)
	b.SQL(`UPDATE operation SET error_code = $2 WHERE id = $1`, superseded.ID, operation.Superseded)
	succeeded, launch := at(lifecycle.MemberDrain, lifecycle.OperationSucceeded),
		at(lifecycle.InstanceCreate, lifecycle.OperationFailed)
	unknown, failed := at(lifecycle.MemberDrain, lifecycle.OperationFailed),
		at(lifecycle.AllocationRelease, lifecycle.OperationFailed)
	running := at(lifecycle.MemberDrain, lifecycle.OperationRunning)
	for name, c := range map[string]struct {
		op   *operation.View
		word string
	}{
		"superseded": {superseded, "superseded"}, "succeeded": {succeeded, "succeeded"},
		"running": {running, "RUNNING"},
		"launch":  {launch, "launch it again"}, "release": {failed, "request the release"},
		"asked for nothing that is kept": {unknown, "not stored"},
	} {
		_, err := b.service.Retry(b.admin, of(c.op, "k"))
		platformtest.Refused(t, err, fault.FailedPrecondition, "input.operationId")
		require.Contains(t, fault.From(err).Message, c.word, name)
	}
	viewer := b.As(b.User(b.tenant, platformtest.In(authz.ProjectViewer, b.project)))
	_, err := b.service.Retry(viewer, of(unknown, "k"))
	platformtest.Refused(t, err, fault.Forbidden, "")
	_, err = b.service.Retry(b.As(b.User(b.Tenant())), of(unknown, "k"))
	platformtest.Refused(t, err, fault.NotFound, "")
	_, err = b.service.Retry(b.admin, retry.Input{OperationID: ids.New(ids.Operation), IdempotencyKey: "k"})
	platformtest.Refused(t, err, fault.NotFound, "")
	require.Equal(t, 6, b.Count("operation", ""))
	require.Zero(t, b.Count("idempotency", ""))
}

func TestARetryAsksForTheKindsOwnKeyAndEveryRule(t *testing.T) {
	t.Parallel()
	b := setup(t)
	op, err := changed(b.verbs.Drain(b.admin, member.Input{MemberID: b.members[0].ID, DeadlineSeconds: 60,
		IdempotencyKey: "k"}))
	require.NoError(t, err)
	b.ended(op, lifecycle.OperationFailed, "X")
	_, key := b.ServiceAccount(b.project, authz.OperationRetry, authz.OperationRead)
	_, err = b.service.Retry(b.With(key), of(op, "r"))
	platformtest.Refused(t, err, fault.Forbidden, "")
	require.Contains(t, fault.From(err).Message, "apps.node.operate")
	for _, status := range []string{"REMOVING", "REMOVED"} {
		b.SQL(`UPDATE member SET status = $2 WHERE id = $1`, b.members[0].ID, status)
	}
	_, err = b.service.Retry(b.admin, of(op, "r"))
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.memberId")
	require.Equal(t, 1, b.Count("operation", ""))
}
