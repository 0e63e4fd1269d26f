package webhook_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/service/ledger/event"
	verbs "github.com/gpuaas/app-platform/service/webhook"
	"github.com/gpuaas/app-platform/workers/webhook"
)

func TestWhatDoesNotFitIntoTheWindowWaitsInTheFeed(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work(func(c *webhook.Config) {
		c.Pace.Backoff = func(int) time.Duration { return time.Hour }
		c.Pace.Rest = func(time.Duration) time.Duration { return time.Hour }
	})
	to := l.receiver()
	to.answers(status(http.StatusInternalServerError))
	row, _ := l.hook(to.URL)
	const all, window = 1_050, 1_000
	l.SQL(`INSERT INTO app_instance_event (id, tenant_id, project_id, instance_id, app_slug, permission_family, seq,
		type,
		message, payload, correlation_id, occurred_at)
		SELECT 'evt_' || n, $1, $2, $3, 'app', 'apps', n, 'apps.instance.healthy', n::text, '{}', 'c', now()
		FROM generate_series(1, $4::int) n`,
		l.project.TenantID, l.project.ID, l.instance.ID, all)
	l.DB.Wake(event.ProjectTopic(l.project.ID))
	l.until("the window is full", func() bool { return l.Count("webhook_delivery", "state = 'PENDING'") == window })
	l.until("its receiver is left alone", func() bool { return l.now(row.ID).FailingSince != nil })
	require.LessOrEqual(t, len(to.requests()), 8)
	to.answers(nil)
	failed := len(to.requests())
	l.SQL(`UPDATE webhook_delivery SET next_attempt_at = now() WHERE state = 'PENDING'`)
	no := false
	_, err := l.verbs.Update(l.admin, verbs.UpdateInput{WebhookID: row.ID, Paused: &no})
	require.NoError(t, err)
	l.settled(lifecycle.DeliveryDelivered, all)
	require.Len(t, to.requests(), all+failed)
}
