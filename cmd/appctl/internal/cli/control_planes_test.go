package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSharedControlPlanesAreAskedAsTheProjectThatIsAttached(t *testing.T) {
	t.Parallel()
	for _, given := range []string{"queue", "cps_1", "ins_9"} {
		r := newRig(t)
		got := r.run(t.Context(), "", "action", "run", given, "greet", "--shared", "--idempotency-key", "k")
		require.Zero(t, got.code, got.stderr)
		sent, err := json.Marshal(r.CallsOf("invokeAction")[0].Input())
		require.NoError(t, err)
		require.JSONEq(t, `{"instanceId":"ins_9","action":"greet","projectId":"prj_1","idempotencyKey":"k"}`,
			string(sent), given)
	}
	r := newRig(t)
	got := r.run(t.Context(), "", "action", "run", "nothing", "greet", "--shared")
	require.Equal(t, 3, got.code, got.stderr)
	require.Empty(t, r.CallsOf("invokeAction"))
}

func TestALaunchSaysWhomItsControlPlaneServes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	line := "launch hello --name one --allocation slot-1 --mode platform-managed --serves tenant --idempotency-key k"
	require.Zero(t, r.run(t.Context(), "", strings.Fields(line)...).code)
	sent := r.CallsOf("launchInstance")[0].Input()
	require.Equal(t, []any{"PLATFORM_MANAGED", "TENANT"}, []any{sent["operatingMode"], sent["controlPlaneScope"]})
	require.Equal(t, 2, r.run(t.Context(), "", "launch", "hello", "--name", "one", "--allocation", "slot-1", "--serves",
		"everybody").code)
	require.Len(t, r.CallsOf("launchInstance"), 1)
}

func TestMovesOfAShareSendTheirReason(t *testing.T) {
	t.Parallel()
	for verb, field := range map[string]string{
		"accept": "acceptControlPlane", "decline": "declineControlPlane", "withdraw": "withdrawControlPlane",
		"detach": "detachControlPlane",
	} {
		r := newRig(t)
		require.Zero(t, r.run(t.Context(), "", "control-planes", verb, "cps_7", "--reason", "because").code)
		call := r.CallsOf(field)[0]
		require.Equal(t, []any{"cps_7", "because"}, []any{call.Args["shareId"], call.Args["reason"]}, verb)
	}
	r := newRig(t)
	require.Equal(t, 2, r.run(t.Context(), "", "control-planes", "withdraw", "cps_7").code,
		"to put somebody out takes a reason")
	require.Empty(t, r.CallsOf("withdrawControlPlane"))
}

func TestAControlPlaneInUseIsAConflict(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.Handle("decommissionInstance", refuse("CONTROL_PLANE_IN_USE", "1 other project uses it"))
	require.Equal(t, 5, r.run(t.Context(), "", "instances", "decommission", "one", "--no-plan").code)
}
