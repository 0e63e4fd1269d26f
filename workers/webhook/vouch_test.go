package webhook_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/ledger/event"
	verbs "github.com/gpuaas/app-platform/service/webhook"
)

// Events of capacity that no instance uses are sent to webhooks whose maker may read allocations: not to one that was
// created before there were such events.
func TestAnEventOfAFreeAllocationNamesIt(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	to, older := l.receiver(), l.receiver()
	for _, one := range []*receiver{older, to} {
		made, err := l.verbs.Create(l.admin, verbs.CreateInput{ProjectID: l.project.ID, URL: one.URL,
			EventTypes: []string{"apps.*"}, IdempotencyKey: string(ids.New(ids.Webhook))})
		require.NoError(t, err)
		if one == older {
			l.SQL(`UPDATE webhook SET families = '["apps", "scheduler"]' WHERE id = $1`, made.Webhook.ID)
		}
	}
	node, _ := l.Node(2)
	row := l.Allocation(l.project, node)
	require.NoError(t, l.DB.Write(l.admin, func(ctx context.Context, t *tx.Tx) error {
		return event.AppendFree(t, row, event.Draft{Type: lifecycle.EventAllocationReleasing, Message: "it goes"})
	}))
	l.happen(lifecycle.EventInstanceHealthy, "one")
	l.work(nil)
	l.settled(lifecycle.DeliveryDelivered, 3)
	require.Equal(t, []string{"one"}, older.messages())
	require.ElementsMatch(t, []string{"it goes", "one"}, to.messages())
	for _, one := range to.requests() {
		data := one.event.Data
		if data.Message == "one" {
			require.Nil(t, data.AllocationID)
			continue
		}
		require.Equal(t, []any{string(row.ID), "", "", 1},
			[]any{*data.AllocationID, data.AppInstanceID, data.AppSlug, data.Seq})
	}
}

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
