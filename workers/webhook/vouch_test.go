package webhook_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/platformtest"
	verbs "github.com/gpuaas/app-platform/service/webhook"
)

// A webhook sends what its maker may see, and nothing once that is nothing. Somebody else
// who may see it can answer for it, and it goes on where it stood.
func TestAWebhookAsksWhetherItsMakerMayStillSee(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	to := l.receiver()
	row, _ := l.hook(to.URL)
	l.happen(lifecycle.EventInstanceHealthy, "one")
	stop := l.work(nil)
	l.settled(lifecycle.DeliveryDelivered, 1)
	stop()
	l.SQL(`UPDATE role_binding SET revoked_at = now()`)
	next := l.As(l.User(&db.Tenant{ID: l.project.TenantID}, platformtest.In(authz.ProjectAdmin, l.project)))
	l.admin = next
	l.happen(lifecycle.EventInstanceHealthy, "two")
	stop = l.work(nil)
	l.until("the webhook says why nothing is sent", func() bool {
		return strings.Contains(l.now(row.ID).LastError, "may not read its events")
	})
	stop()
	require.Equal(t, []string{"one"}, to.messages())

	no := false
	_, err := l.verbs.Update(next, verbs.UpdateInput{WebhookID: row.ID, Paused: &no})
	require.NoError(t, err)
	l.work(nil)
	l.settled(lifecycle.DeliveryDelivered, 2)
	require.Equal(t, []string{"one", "two"}, to.messages())
}
