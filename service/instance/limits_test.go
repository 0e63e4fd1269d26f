package instance_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/instance"
)

// limited wants a refusal by the account's own limits.
func limited(t *testing.T, err error, code fault.Code) {
	t.Helper()
	got, ok := fault.As(err)
	require.True(t, ok, "%v", err)
	require.Equal(t, code, got.Code, err)
	require.NotEmpty(t, got.Reasons)
	require.Equal(t, fault.AccountLimit, got.Reasons[0].Code)
}

func TestAnAccountAsksForNoRiskBeyondItsLimit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	started := b.running()
	_, key := b.ServiceAccount(b.project, authz.AppsInstanceRead, authz.AppsQueueSubmit, authz.AppsQueueRead)
	b.SQL(`UPDATE service_account SET limits = '{"maxRisk": "READ"}'`)
	robot := b.With(key)
	before := b.written()
	_, err := b.service.InvokeAction(robot, submit(started))
	limited(t, err, fault.Forbidden)
	require.Empty(t, b.standIn.Actions)
	require.Equal(t, before, b.written())
	_, err = b.service.InvokeAction(robot, instance.ActionInput{InstanceID: started.Instance.ID, Action: "queue.read",
		IdempotencyKey: "r"})
	require.NoError(t, err)
	b.SQL(`UPDATE service_account SET limits = NULL`)
	_, err = b.service.InvokeAction(robot, submit(started))
	require.NoError(t, err, "it was the limit, and it is looked at anew with each call")
}

func TestAnAccountThatIsLimitedToObjectsTouchesNoOthers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	started := b.running()
	_, key := b.ServiceAccount(b.project, authz.AppsInstanceRead, authz.AppsInstanceCreate, authz.AppsQueueRead)
	robot := b.With(key)
	read := instance.ActionInput{InstanceID: started.Instance.ID, Action: "queue.read", IdempotencyKey: "r"}
	b.SQL(`UPDATE service_account SET limits = jsonb_build_object('objectIds',
		jsonb_build_array('ins_00000000000000000000000000'))`)
	_, err := b.service.InvokeAction(robot, read)
	platformtest.Refused(t, err, fault.NotFound, "")
	before := b.written()
	_, err = b.service.Launch(robot, b.launch())
	limited(t, err, fault.Forbidden)
	require.Equal(t, before, b.written())
	b.SQL(`UPDATE service_account SET limits = jsonb_build_object('objectIds', jsonb_build_array($1::text))`,
		started.Instance.ID)
	_, err = b.service.InvokeAction(robot, read)
	require.NoError(t, err)
}

func TestAnAccountBeginsNoMoreOperationsAnHourThanItMay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	account, key := b.ServiceAccount(b.project, authz.AppsInstanceRead, authz.AppsInstanceCreate)
	b.SQL(`UPDATE service_account SET limits = '{"operationsPerHour": 1}'`)
	robot := b.With(key)
	_, err := b.service.Launch(robot, b.launch(func(in *instance.LaunchInput) {
		in.AllocationIDs = in.AllocationIDs[:1]
	}))
	require.NoError(t, err)
	next := b.launch(func(in *instance.LaunchInput) {
		in.AllocationIDs, in.Name, in.IdempotencyKey = in.AllocationIDs[1:], "second", "second"
	})
	before := b.written()
	_, err = b.service.Launch(robot, next)
	limited(t, err, fault.RateLimited)
	require.Equal(t, before, b.written())
	b.Audit()
	require.Equal(t, 1, b.Count("audit_entry", "action = 'beginOperation' AND NOT allowed AND actor_id = $1",
		account.ID))
	b.SQL(`UPDATE operation SET created_at = now() - interval '61 minutes' WHERE requester_id = $1`, account.ID)
	_, err = b.service.Launch(robot, next)
	require.NoError(t, err, "an hour later")
	require.Equal(t, 2, b.Count("operation", "requester_kind = $1", string(authz.KindServiceAccount)))
}
