package webhook_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/ids"
)

func TestOldDeliveriesAreForgottenAndThoseThatWaitAreKept(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	row, _ := l.hook("https://hooks.test/")
	l.SQL(`UPDATE webhook SET status = 'PAUSED'`)
	for state, days := range map[string]int{"DELIVERED": 31, "DEAD": 32, "PENDING": 33} {
		l.SQL(`INSERT INTO webhook_delivery (id, tenant_id, project_id, webhook_id, event_id, event_type, state,
			created_at,
			updated_at)
			VALUES ($1, $2, $3, $4, $5, 'x', $6, now(), now() - $7 * interval '1 day'), ($8, $2, $3, $4, $8, 'x', $6, now(),
			now() - interval '29 days')`,
			ids.New(ids.WebhookDelivery), row.TenantID, row.ProjectID, row.ID, ids.New(ids.Event), state, days,
			ids.New(ids.WebhookDelivery))
	}
	l.work(nil)
	l.until("the old ones are gone", func() bool { return l.Count("webhook_delivery", "") == 4 })
	require.Equal(t, 2, l.Count("webhook_delivery", "state = 'PENDING'"))
}
