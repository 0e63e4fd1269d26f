package instance_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/repair"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/instance"
)

func TestARepairPolicyIsKeptAuditedAndShown(t *testing.T) {
	t.Parallel()
	b := setup(t)
	started := b.runs()
	shown, err := started.Instance.Repair()
	require.NoError(t, err)
	require.Equal(t, repair.Default(), *shown, "repair is left to people")
	b.SQL(`UPDATE instance SET repair_stopped = 'no node is free' WHERE id = $1`, started.Instance.ID)
	in := instance.RepairInput{InstanceID: started.Instance.ID, Mode: repair.Automatic, Budget: 5, BackOffSeconds: 60,
		GraceSeconds: new(600), HourlyLimitMicros: new(2_000_000), Reason: "nobody watches it"}
	out, err := b.service.SetRepair(b.ctx, in)
	require.NoError(t, err)
	require.Empty(t, out.RepairStopped, "it is decided again")
	stored := &instance.View{Instance: b.Ent.Instance.GetX(t.Context(), started.Instance.ID)}
	shown, err = stored.Repair()
	require.NoError(t, err)
	require.Equal(t, repair.Policy{Mode: repair.Automatic, Budget: 5, BackOffSeconds: 60, GraceSeconds: new(600),
		HourlyLimitMicros: new(2_000_000)}, *shown)
	require.Equal(t, 1, b.Count("audit_entry", `allowed AND action = 'setRepairPolicy' AND permission_key = 'apps.instance.update'
		AND reason = 'nobody watches it'`))
}

func TestAPolicyOutOfBoundsAndOneOfATornDownInstanceAreRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	started := b.runs()
	in := instance.RepairInput{InstanceID: started.Instance.ID, Mode: repair.Manual, Budget: 0, BackOffSeconds: 30}
	before := b.written()
	_, err := b.service.SetRepair(b.ctx, in)
	platformtest.Refused(t, err, fault.InvalidArgument, "input.budget")
	in.Budget = 1
	b.SQL(`UPDATE instance SET released_at = now() WHERE id = $1`, started.Instance.ID)
	_, err = b.service.SetRepair(b.ctx, in)
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.instanceId")
	require.Equal(t, before, b.written())
}

func TestAutomaticRepairNeedsTheKeysThatItUses(t *testing.T) {
	t.Parallel()
	b := setup(t)
	started := b.runs()
	_, credential := b.ServiceAccount(b.project, authz.AppsInstanceUpdate, authz.AppsInstanceRead)
	in := instance.RepairInput{InstanceID: started.Instance.ID, Mode: repair.Automatic, Budget: 1, BackOffSeconds: 30}
	_, err := b.service.SetRepair(b.With(credential), in)
	require.True(t, fault.Is(err, fault.Forbidden), "%v", err)
	require.Nil(t, b.Ent.Instance.GetX(t.Context(), started.Instance.ID).Repair)
	in.Mode = repair.Manual
	_, err = b.service.SetRepair(b.With(credential), in)
	require.NoError(t, err)
}
