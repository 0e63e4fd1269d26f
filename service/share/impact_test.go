package share_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/allocation"
	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/service/kit/impact"
	"github.com/gpuaas/app-platform/service/member"
	"github.com/gpuaas/app-platform/service/share"
)

func (b *bundle) decommission(change func(*instance.DecommissionInput)) error {
	in := instance.DecommissionInput{InstanceID: b.made.ID, DeadlineSeconds: 60, IdempotencyKey: "k"}
	change(&in)
	_, err := b.instances.Decommission(b.owner, in)
	return err
}

// teardown is the input of a plan of the control plane's end.
func (b *bundle) teardown(force bool) instance.DecommissionInput {
	return instance.DecommissionInput{InstanceID: b.made.ID, DeadlineSeconds: 60, Force: force}
}

func TestTheImpactNamesEveryProjectThatAChangeWouldTouch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.attached()
	disabled := b.User(b.tenant, platformtest.In(authz.ProjectMember, b.guest))
	b.SQL(`UPDATE person SET disabled_at = now() WHERE id = $1`, disabled.ID)
	over := time.Now().Add(-time.Hour)
	expired := platformtest.In(authz.ProjectMember, b.guest)
	expired.ExpiresAt = &over
	b.User(b.tenant, expired)
	b.User(b.tenant, platformtest.Across(authz.ProjectMember, b.tenant)) // counts in both
	b.ServiceAccount(b.guest, authz.AppsQueueRead)
	b.ServiceAccount(b.guest, authz.AllocationRead) // cannot use it
	for _, key := range []string{"one", "two"} {
		_, err := b.instances.InvokeAction(b.As(b.guestMember), b.action(key))
		require.NoError(t, err)
	}
	b.SQL(`INSERT INTO audit_entry (id, tenant_id, project_id, actor_kind, actor_id, permission_key, action, allowed,
		object_id, repeats, correlation_id, created_at)
		VALUES ('aud_old', $1, $2, 'USER', 'x', 'apps.queue.read', 'invokeAction queue.read', true, $3, 1, 'c', now() -
		interval '25 hours'),
		('aud_refused', $1, $2, 'USER', 'x', 'apps.queue.read', 'invokeAction queue.read', false, $3, 1, 'c',
		now())`, b.tenant.ID, b.guest.ID, b.made.ID)
	b.Operation(b.made, lifecycle.InstanceUpgrade, lifecycle.OperationRunning)

	for name, ctx := range map[string]context.Context{"the owner's member": b.As(b.member),
		"an operator": b.As(b.Operator())} {
		found, err := impact.Read(ctx, b.DB, b.made.ID)
		require.NoError(t, err, name)
		require.Equal(t, []any{b.made.ID, lifecycle.ControlPlaneTenant, 1, 1, 1},
			[]any{found.InstanceID, found.ControlPlaneScope, found.AttachedTotal, found.MembersTotal,
				found.OpenOperations})
		require.Len(t, found.Projects, 2)
		home, guest := found.Projects[0], found.Projects[1]
		require.Equal(t, []any{b.home.ID, b.home.DisplayName, 3, 0},
			[]any{home.ProjectID, home.DisplayName, home.Subjects, home.RecentActions})
		require.Nil(t, home.AttachedAt)
		require.Equal(t, []any{b.guest.ID, b.guest.DisplayName, 4, 2},
			[]any{guest.ProjectID, guest.DisplayName, guest.Subjects, guest.RecentActions})
		require.NotNil(t, guest.AttachedAt)
	}
	third := b.As(b.User(b.tenant, platformtest.In(authz.ProjectAdmin, b.Project(b.tenant))))
	_, blind := b.ServiceAccount(b.home, authz.AppsInstanceRead)
	for name, c := range map[string]struct {
		ctx  context.Context
		id   ids.ID
		code fault.Code
	}{
		"the attached project": {b.other, b.made.ID, fault.NotFound},
		"a third project":      {third, b.made.ID, fault.NotFound},
		"without the key":      {b.With(blind), b.made.ID, fault.Forbidden},
		"no instance":          {b.owner, ids.New(ids.Instance), fault.NotFound},
	} {
		_, err := impact.Read(c.ctx, b.DB, c.id)
		require.True(t, fault.Is(err, c.code), "%s: %v", name, err)
	}
}

func TestTheImpactOfAnAppWithoutActionsIsShownToo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, document := range []string{`{"docs":"\\u0000"}`, `{"actions":null}`, `{"actions":[]}`} {
		b.SQL(`UPDATE manifest SET document = convert_to($2, 'UTF8') WHERE id = $1`, b.stored.ID, document)
		found, err := impact.Read(b.owner, b.DB, b.made.ID)
		require.NoError(t, err, document)
		require.Equal(t, []int{1, 0}, []int{len(found.Projects), found.Projects[0].Subjects},
			"there is nothing that anybody could ask for")
	}
}

func TestAPlanShowsTheImpactAndRestsOnWhoIsAttached(t *testing.T) {
	t.Parallel()
	b := setup(t)
	before, err := b.instances.PlanDecommission(b.owner, b.teardown(true))
	require.NoError(t, err)
	require.Equal(t, []any{1, 0, 1}, []any{len(before.Impact.Projects), before.Impact.AttachedTotal,
		before.Impact.MembersTotal})
	row := b.attached()
	err = b.decommission(func(in *instance.DecommissionInput) {
		in.Force, in.Reason, in.PlanHash = true, "it goes", before.Hash
	})
	platformtest.Refused(t, err, fault.PlanStale, "input.planHash")
	require.Zero(t, b.Count("operation", ""))

	plan, err := b.instances.PlanDecommission(b.owner, b.teardown(true))
	require.NoError(t, err)
	require.Equal(t, []any{2, 1, b.guest.ID}, []any{len(plan.Impact.Projects), plan.Impact.AttachedTotal,
		plan.Impact.Projects[1].ProjectID})
	_, err = b.service.Detach(b.other, share.Input{ShareID: row.ID})
	require.NoError(t, err)
	err = b.decommission(func(in *instance.DecommissionInput) {
		in.Force, in.Reason, in.PlanHash = true, "it goes", plan.Hash
	})
	platformtest.Refused(t, err, fault.PlanStale, "input.planHash")
	require.Zero(t, b.Count("operation", ""))
}

func TestAControlPlaneIsNotTakenFromUnderOthersUnseen(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.attached()
	err := b.decommission(func(*instance.DecommissionInput) {})
	platformtest.Refused(t, err, fault.ControlPlaneInUse, "input.instanceId")
	require.Contains(t, fault.From(err).Reasons[0].Message, b.guest.DisplayName)
	unforced, err := b.instances.PlanDecommission(b.owner, b.teardown(false))
	require.NoError(t, err)
	require.False(t, unforced.Allowed)
	require.Equal(t, fault.ControlPlaneInUse, unforced.Verdicts[0].Reasons[0].Code)
	err = b.decommission(func(in *instance.DecommissionInput) { in.PlanHash = unforced.Hash })
	platformtest.Refused(t, err, fault.ControlPlaneInUse, "input.instanceId")
	err = b.decommission(func(in *instance.DecommissionInput) { in.Force, in.Reason = true, "it goes" })
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.planHash")

	var seat ids.ID
	require.NoError(t, b.Admin.QueryRow(t.Context(), `SELECT id FROM member WHERE instance_id = $1`,
		b.made.ID).Scan((*string)(&seat)))
	members := &member.Service{DB: b.DB}
	unseen := member.Input{MemberID: seat, DeadlineSeconds: 60, IdempotencyKey: "m"}
	_, err = members.Drain(b.owner, unseen)
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.planHash")
	_, err = b.instances.Upgrade(b.owner, instance.UpgradeInput{InstanceID: b.made.ID, Config: []byte(`{"size":3}`),
		DeadlineSeconds: 60, IdempotencyKey: "u"})
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.planHash")
	var used ids.ID
	require.NoError(t, b.Admin.QueryRow(t.Context(), `SELECT allocation_id FROM member WHERE id = $1`,
		seat).Scan((*string)(&used)))
	b.SQL(`UPDATE allocation SET instance_id = $2 WHERE id = $1`, used, b.made.ID)
	allocations := &allocation.Service{DB: b.DB}
	_, err = allocations.Release(b.owner, allocation.ReleaseInput{AllocationID: used, IdempotencyKey: "r"})
	platformtest.Refused(t, err, fault.ControlPlaneInUse, "input.allocationId")
	require.Zero(t, b.Count("operation", ""))
	require.Zero(t, b.Count("idempotency", "project_id = $1 AND result::text LIKE '%op\\_%'", b.home.ID))

	_, err = members.Cordon(b.owner, member.Input{MemberID: seat, DeadlineSeconds: 60, IdempotencyKey: "c"})
	require.NoError(t, err, "what takes nothing away needs no plan")
	b.SQL(`UPDATE operation SET state = 'RUNNING'`)
	b.SQL(`UPDATE operation SET state = 'SUCCEEDED', ended_at = now()`)
	plan, err := b.instances.PlanDecommission(b.owner, b.teardown(true))
	require.NoError(t, err)
	require.True(t, plan.Allowed)
	err = b.decommission(func(in *instance.DecommissionInput) {
		in.Force, in.Reason, in.PlanHash = true, "it goes", plan.Hash
	})
	require.NoError(t, err)
	require.Equal(t, 1, b.Count("audit_entry",
		"action = 'decommissionInstance' AND allowed AND after -> 'attachedProjects' -> 0 ->> 'ProjectID' = $1",
		b.guest.ID))
}

func TestAnInstanceThatNobodyIsAttachedToChangesAsBefore(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.service.Withdraw(b.owner, share.Input{ShareID: b.attached().ID, Reason: "over"})
	require.NoError(t, err)
	b.offer("open")
	require.NoError(t, b.decommission(func(*instance.DecommissionInput) {}))
}
