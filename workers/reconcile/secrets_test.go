package reconcile

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/rig/platformtest"
)

func TestWhatCanBeDeliveredNoMoreIsWipedAndLaterForgotten(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	project := kit.Project(kit.Tenant())
	_, stored := kit.Launchable(project, "apps")
	instance := kit.Instance(project, stored, lifecycle.InstanceRunning)
	made := func(set string) ids.ID {
		id := ids.New(ids.RuntimeSecret)
		require.NoError(t, kit.Ent.RuntimeSecret.Create().SetID(id).SetTenantID(project.TenantID).
			SetProjectID(project.ID).SetInstanceID(instance.ID).
			SetPurpose("joining").SetAudience(lifecycle.SecretForAdapter).SetDelivery(lifecycle.DeliverUntilExpiry).
			SetSealed([]byte("sealed")).SetPrevious([]byte("before")).SetPreviousUntil(time.Now().Add(time.Hour)).
			SetExpiresAt(time.Now().Add(time.Hour)).Exec(t.Context()))
		kit.SQL(`UPDATE runtime_secret SET `+set+` WHERE id = $1`, id)
		return id
	}
	live := made(`deliveries = 3`)
	overlap := made(`previous_until = now() - interval '1 second'`)
	ended := []ids.ID{made(`expires_at = now() - interval '1 second'`), made(`revoked_at = now()`),
		made(`delivery = 'ONCE', deliveries = 1`)}
	old := made(`expires_at = now() - interval '90 days', created_at = now() - interval '92 days'`)
	young := made(`expires_at = now() - interval '88 days', created_at = now() - interval '89 days'`)

	r := New(Config{DB: kit.DB, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, r.secrets(t.Context()))
	require.Equal(t, 1, kit.Count("runtime_secret", "id = $1 AND sealed IS NOT NULL AND previous IS NOT NULL", live))
	require.Equal(t, 1, kit.Count("runtime_secret",
		"id = $1 AND sealed IS NOT NULL AND previous IS NULL AND previous_until IS NULL", overlap))
	require.Equal(t, 3, kit.Count("runtime_secret", "id = ANY ($1) AND sealed IS NULL AND previous IS NULL", ended))
	require.Equal(t, 1, kit.Count("runtime_secret", "id = $1", young))
	require.Zero(t, kit.Count("runtime_secret", "id = $1", old))
	require.EqualValues(t, 7, r.Stats.Forgotten.Load())
	require.NoError(t, r.secrets(t.Context()))
	require.EqualValues(t, 7, r.Stats.Forgotten.Load(), "a second look finds nothing")
}
