package task_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/rig/platformtest"
)

// runtimeSecret makes a secret of the bench's instance, bound to a member's node or, without one, to the adapter.
func (b *bench) runtimeSecret(member *ids.ID) ids.ID {
	b.t.Helper()
	id := ids.New(ids.RuntimeSecret)
	create := b.Ent.RuntimeSecret.Create().SetID(id).SetTenantID(b.instance.TenantID).
		SetProjectID(b.instance.ProjectID).SetInstanceID(b.instance.ID).
		SetPurpose("joining").SetAudience(lifecycle.SecretForAdapter).SetDelivery(lifecycle.DeliverOnce).
		SetExpiresAt(time.Now().Add(time.Hour))
	if member != nil {
		create.SetAudience(lifecycle.SecretForNode).SetMemberID(*member).SetNodeID(b.node.ID)
	}
	require.NoError(b.t, create.Exec(b.t.Context()))
	return id
}

func TestATaskRefersToSecretsOfItsMembersNodeAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	good, adapters := b.runtimeSecret(&b.member.ID), b.runtimeSecret(nil)
	for _, ref := range []ids.ID{adapters, ids.New(ids.RuntimeSecret)} {
		in := b.input("k")
		in.Spec = json.RawMessage(`{"command":["true"],"env":[{"name":"A","secretRef":"` + string(good) +
			`"},{"name":"B","secretRef":"` + string(ref) + `"}]}`)
		_, err := b.Run(b.adapter, in)
		platformtest.Refused(t, err, fault.InvalidArgument, "input.spec.env.1.secretRef")
	}
	require.Zero(t, b.Count("node_task", ""))
	in := b.input("k")
	in.Kind, in.Spec = lifecycle.TaskWriteFile, json.RawMessage(`{"path":"/run/key","secretRef":"`+string(good)+`"}`)
	made, err := b.Run(b.adapter, in)
	require.NoError(t, err)
	b.SQL(`UPDATE runtime_secret SET revoked_at = now()`)
	again, err := b.Run(b.adapter, in)
	require.NoError(t, err)
	require.Equal(t, made.ID, again.ID)
}
