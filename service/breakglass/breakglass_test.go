package breakglass_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/breakglass"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/service/ledger/queue"
)

const because = "the adapter hangs and its host is gone"

type bundle struct {
	*platformtest.Kit
	t        *testing.T
	service  *breakglass.Service
	log      *bytes.Buffer
	tenant   *db.Tenant
	project  *db.Project
	operator *db.User
	ctx      context.Context
}

func setup(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{Kit: platformtest.New(t), t: t, log: &bytes.Buffer{}}
	b.service = &breakglass.Service{DB: b.DB, Log: slog.New(slog.NewJSONHandler(b.log, nil))}
	b.tenant = b.Tenant()
	b.project = b.Project(b.tenant)
	b.operator = b.Operator()
	b.ctx = b.As(b.operator)
	return b
}

// held is an operation that a worker holds, on an instance with one member on a node.
func (b *bundle) held(kind lifecycle.OperationKind, status lifecycle.InstanceStatus,
	member lifecycle.MemberStatus) *db.Operation {
	b.t.Helper()
	node, _ := b.Node(1)
	_, stored := b.Launchable(b.project, "apps")
	instance := b.Instance(b.project, stored, status, b.Allocation(b.project, node))
	op := b.Operation(instance, kind, lifecycle.OperationRunning)
	b.SQL(`UPDATE member SET last_operation_id = $1`, op.ID)
	transaction, err := b.Admin.Begin(b.t.Context())
	require.NoError(b.t, err)
	defer func() { _ = transaction.Rollback(context.Background()) }()
	for _, statement := range []string{`SET LOCAL session_replication_role = replica`,
		`UPDATE member SET status = '` + string(member) + `'`,
		`UPDATE operation SET claimed_by = 'wrk_one', claim_epoch = 3, dispatch_attempt = 1`} {
		_, err := transaction.Exec(b.t.Context(), statement)
		require.NoError(b.t, err, statement)
	}
	require.NoError(b.t, transaction.Commit(b.t.Context()))
	return op
}

func (b *bundle) end(op *db.Operation) (*operation.View, error) {
	return b.service.EndOperation(b.ctx, breakglass.EndOperationInput{OperationID: op.ID, Reason: because,
		Incident: "INC-7"})
}

func TestAHeldOperationIsEndedFencedAndFlaggedEverywhere(t *testing.T) {
	t.Parallel()
	b := setup(t)
	op := b.held(lifecycle.InstanceCreate, lifecycle.InstanceStarting, lifecycle.MemberJoining)
	ended, err := b.end(op)
	require.NoError(t, err)
	require.Equal(t, lifecycle.OperationFailed, ended.State)
	require.Equal(t, lifecycle.OutcomeUnverified, *ended.Outcome)
	require.Contains(t, ended.ErrorMessage, because)
	require.Equal(t, breakglass.Ended, ended.ErrorCode)

	held := &queue.Held{Operation: op, Worker: "wrk_one"}
	held.ClaimEpoch = 3
	require.ErrorIs(t, held.Refresh(t.Context(), b.DB.Worker()), queue.ErrFenced)
	require.Equal(t, 1, b.Count("operation", "claim_epoch = 4 AND claimed_by IS NULL AND ended_at IS NOT NULL"))
	require.Equal(t, 1, b.Count("instance", "status = 'FAILED' AND failure_code = 'BREAK_GLASS'"))
	require.Equal(t, 1, b.Count("member", "status = 'FAILED'"))
	require.Equal(t, 1, b.Count("orphan",
		"operation_id = $1 AND kind = 'NODE_RESIDUE' AND resolved_at IS NULL AND owner = 'node'", op.ID))
	for _, kind := range []string{"apps.instance.break_glass", "apps.instance.failed", "apps.instance.member_failed",
		"apps.orphan.found", "apps.operation.failed"} {
		require.Equal(t, 1, b.Count("app_instance_event", "type = $1", kind), kind)
	}
	require.Equal(t, 1, b.Count("app_instance_event",
		"type = 'apps.instance.break_glass' AND position($1 in message) > 0 AND position($2 in message) > 0",
		because, b.operator.DisplayName))

	entries := b.Audit()
	require.Len(t, entries, 1)
	require.True(t, entries[0].BreakGlass && entries[0].Allowed)
	require.Equal(t, "break_glass.use", entries[0].PermissionKey)
	require.Equal(t, string(op.ID), entries[0].ObjectID)
	require.Equal(t, because, entries[0].Reason)
	require.Contains(t, string(entries[0].After), "INC-7")
	require.EqualValues(t, 1, b.service.Used.Load())
	require.Contains(t, b.log.String(), `"level":"WARN"`)
	require.Contains(t, b.log.String(), "INC-7")

	_, err = b.end(op)
	require.True(t, fault.Is(err, fault.FailedPrecondition), "%v", err)
	require.Equal(t, "input.operationId", fault.From(err).Reasons[0].Path)
}

// What serves is not touched: its operation ends, it does not.
func TestWhatServesStaysAsItIs(t *testing.T) {
	t.Parallel()
	for _, kind := range []lifecycle.OperationKind{lifecycle.InstanceUpgrade, lifecycle.MemberCordon} {
		b := setup(t)
		_, err := b.end(b.held(kind, lifecycle.InstanceRunning, lifecycle.MemberActive))
		require.NoError(t, err)
		require.Equal(t, 1, b.Count("instance", "status = 'RUNNING'"))
		require.Equal(t, 1, b.Count("member", "status = 'ACTIVE'"))
		require.Zero(t, b.Count("orphan", ""))
	}
}

func TestATeardownThatIsEndedCanBeAskedForAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.end(b.held(lifecycle.InstanceDecommission, lifecycle.InstanceStopping, lifecycle.MemberRemoving))
	require.NoError(t, err)
	require.Equal(t, 1, b.Count("instance", "status = 'STOPPING' AND released_at IS NULL"))
	require.Equal(t, 1, b.Count("member", "status = 'REMOVING'"))
	require.Equal(t, 1, b.Count("orphan", "kind = 'NODE_RESIDUE'"))
}

// The member that replaces another is not a target of the operation. It is settled all the same, and what may be left
// of it is listed, so that a member that nothing carries on does not keep its capacity.
func TestAReplacementThatIsEndedSettlesTheNewcomer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	node, _ := b.Node(2)
	_, stored := b.Launchable(b.project, "apps")
	instance := b.Instance(b.project, stored, lifecycle.InstanceRunning, b.Allocation(b.project, node),
		b.Allocation(b.project, node))
	op := b.Operation(instance, lifecycle.MemberReplace, lifecycle.OperationRunning)
	transaction, err := b.Admin.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = transaction.Rollback(context.Background()) }()
	for _, statement := range []string{`SET LOCAL session_replication_role = replica`,
		`UPDATE member SET status = 'JOINING', last_operation_id = '` + string(op.ID) + `' WHERE ordinal = 1`,
		`UPDATE operation SET dispatch_attempt = 1, targets = (SELECT jsonb_build_array(id) FROM member WHERE ordinal = 0),
			desired_change = (SELECT jsonb_build_object('replacementId', id) FROM member WHERE ordinal = 1)`} {
		_, err := transaction.Exec(t.Context(), statement)
		require.NoError(t, err, statement)
	}
	require.NoError(t, transaction.Commit(t.Context()))
	_, err = b.end(op)
	require.NoError(t, err)
	require.Equal(t, 1, b.Count("member", "ordinal = 0 AND status = 'ACTIVE'"))
	require.Equal(t, 1, b.Count("member", "ordinal = 1 AND status = 'FAILED'"))
	require.Equal(t, 1, b.Count("orphan",
		"kind = 'NODE_RESIDUE' AND member_id = (SELECT id FROM member WHERE ordinal = 1)"))
	require.Equal(t, 1, b.Count("app_instance_event", "type = 'apps.instance.member_failed'"))
}

func TestEveryStateEndsByALegalStep(t *testing.T) {
	t.Parallel()
	for _, state := range []lifecycle.OperationState{lifecycle.OperationPending, lifecycle.OperationRunning,
		lifecycle.OperationCanceling, lifecycle.OperationCompensating} {
		b := setup(t)
		node, _ := b.Node(1)
		_, stored := b.Launchable(b.project, "apps")
		instance := b.Instance(b.project, stored, lifecycle.InstanceRunning, b.Allocation(b.project, node))
		ended, err := b.end(b.Operation(instance, lifecycle.MembersAdd, state))
		require.NoError(t, err, state)
		require.Equal(t, lifecycle.OperationFailed, ended.State)
	}
}

func TestARoleIsGivenForAShortTimeAlsoToOneself(t *testing.T) {
	t.Parallel()
	b := setup(t)
	staff := b.User(nil)
	for _, subject := range []*db.User{b.operator, staff} {
		before := time.Now()
		row, err := b.service.GrantRole(b.ctx, breakglass.GrantRoleInput{SubjectID: subject.ID, Role: "project_admin",
			ProjectID:       &b.project.ID,
			DurationMinutes: 30, Reason: because})
		require.NoError(t, err)
		require.True(t, row.BreakGlass)
		require.Equal(t, because, row.Reason)
		require.WithinDuration(t, before.Add(30*time.Minute), *row.ExpiresAt, time.Minute)
		actor, err := b.DB.Read(b.As(subject))
		require.NoError(t, err)
		require.NoError(t, authz.Require(actor, authz.AppsInstanceCreate, b.tenant.ID, b.project.ID))
	}
	require.Equal(t, 2, b.Count("audit_entry",
		"break_glass AND allowed AND action = 'breakGlassGrantRole' AND project_id = $1", b.project.ID))
	b.SQL(`UPDATE role_binding SET expires_at = now() - interval '1 second' WHERE break_glass`)
	actor, err := b.DB.Read(b.As(staff))
	require.NoError(t, err)
	require.Error(t, authz.Require(actor, authz.AppsInstanceCreate, b.tenant.ID, b.project.ID), "it ended by itself")
}

func TestNobodyElseBreaksTheGlass(t *testing.T) {
	t.Parallel()
	b := setup(t)
	op := b.held(lifecycle.MembersAdd, lifecycle.InstanceRunning, lifecycle.MemberJoining)
	admin := b.User(b.tenant, platformtest.Across(authz.TenantAdmin, b.tenant),
		platformtest.In(authz.ProjectAdmin, b.project))
	_, err := b.service.EndOperation(b.As(admin), breakglass.EndOperationInput{OperationID: op.ID, Reason: because})
	require.True(t, fault.Is(err, fault.Forbidden), "%v", err)
	_, err = b.service.GrantRole(b.As(admin), breakglass.GrantRoleInput{SubjectID: admin.ID, Role: "tenant_admin",
		TenantID: &b.tenant.ID, DurationMinutes: 5, Reason: because})
	require.True(t, fault.Is(err, fault.Forbidden), "%v", err)
	require.Zero(t, b.Count("operation", "ended_at IS NOT NULL"))
	require.Zero(t, b.Count("role_binding", "break_glass"))
	require.Len(t, b.Audit(), 2)
	require.Equal(t, 2, b.Count("audit_entry",
		"NOT allowed AND permission_key = 'break_glass.use' AND code = 'FORBIDDEN'"))
	require.Zero(t, b.service.Used.Load())
}

func TestWhatIsSaidIsChecked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	other := b.Tenant()
	stranger := b.User(other)
	disabled := b.User(nil)
	b.SQL(`UPDATE person SET disabled_at = now() WHERE id = $1`, disabled.ID)
	nobody := ids.New(ids.Project)
	good := breakglass.GrantRoleInput{SubjectID: b.operator.ID, Role: "project_admin", ProjectID: &b.project.ID,
		DurationMinutes: 30, Reason: because}
	for name, c := range map[string]struct {
		change func(*breakglass.GrantRoleInput)
		code   fault.Code
		path   string
	}{
		"no reason": {func(in *breakglass.GrantRoleInput) { in.Reason = "" }, fault.InvalidArgument, "input.reason"},
		"a short reason": {func(in *breakglass.GrantRoleInput) { in.Reason = "   short   " + strings.Repeat(" ", 30) },
			fault.InvalidArgument, "input.reason"},
		"a long incident": {func(in *breakglass.GrantRoleInput) { in.Incident = strings.Repeat("x", 101) },
			fault.InvalidArgument, "input.incident"},
		"the operator": {func(in *breakglass.GrantRoleInput) { in.Role, in.ProjectID = "platform_operator", nil },
			fault.InvalidArgument, "input.role"},
		"no such role": {func(in *breakglass.GrantRoleInput) { in.Role = "root" }, fault.InvalidArgument, "input.role"},
		"a role elsewhere": {func(in *breakglass.GrantRoleInput) { in.ProjectID = nil }, fault.InvalidArgument,
			"input.role"},
		"too short a time": {func(in *breakglass.GrantRoleInput) { in.DurationMinutes = 4 }, fault.InvalidArgument,
			"input.durationMinutes"},
		"too long a time": {func(in *breakglass.GrantRoleInput) { in.DurationMinutes = 241 }, fault.InvalidArgument,
			"input.durationMinutes"},
		"another tenant": {func(in *breakglass.GrantRoleInput) { in.TenantID = &other.ID }, fault.InvalidArgument,
			"input.tenantId"},
		"another's person": {func(in *breakglass.GrantRoleInput) { in.SubjectID = stranger.ID },
			fault.FailedPrecondition, "input.subjectId"},
		"somebody disabled": {func(in *breakglass.GrantRoleInput) { in.SubjectID = disabled.ID },
			fault.FailedPrecondition, "input.subjectId"},
		"no such project": {func(in *breakglass.GrantRoleInput) { in.ProjectID = &nobody }, fault.NotFound, ""},
	} {
		in := good
		c.change(&in)
		_, err := b.service.GrantRole(b.ctx, in)
		require.True(t, fault.Is(err, c.code), "%s: %v", name, err)
		if c.path != "" {
			require.Equal(t, c.path, fault.From(err).Reasons[0].Path, name)
		}
	}
	require.Zero(t, b.Count("role_binding", "break_glass"))
	_, err := b.service.EndOperation(b.ctx, breakglass.EndOperationInput{OperationID: ids.New(ids.Operation),
		Reason: because})
	require.True(t, fault.Is(err, fault.NotFound), "%v", err)
}
