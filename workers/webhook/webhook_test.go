package webhook_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/dial"
	sdk "github.com/gpuaas/app-platform/sdk/webhook"
	"github.com/gpuaas/app-platform/service/kit/page"
	verbs "github.com/gpuaas/app-platform/service/webhook"
	"github.com/gpuaas/app-platform/workers/webhook"
)

func TestAnEventIsPostedSignedWithWhatTheAPIKnowsOfIt(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	stats := &webhook.Stats{}
	l.work(func(c *webhook.Config) { c.Stats = stats })
	to := l.receiver()
	row, secret := l.hook(to.URL + "/hook?token=hidden")
	l.happen(lifecycle.EventOperationStarted, "not chosen")
	l.happen(lifecycle.EventInstanceHealthy, "hello")
	l.settled(lifecycle.DeliveryDelivered, 1)
	require.Len(t, to.requests(), 1)
	one := to.requests()[0]
	reference, err := standard.NewWebhook(secret)
	require.NoError(t, err)
	require.NoError(t, reference.Verify(one.body, one.header))
	require.NoError(t, sdk.Verify(secret, one.header, one.body, time.Now()))

	stored := l.Ent.Event.Query().AllX(t.Context())[1]
	require.Equal(t, "apps.instance.healthy", one.event.Type)
	require.True(t, stored.OccurredAt.Equal(one.event.Timestamp))
	data := one.event.Data
	require.Equal(t, []any{string(stored.ID), 2, string(l.project.TenantID), string(l.project.ID),
		string(l.instance.ID), l.instance.AppSlug, "hello", stored.CorrelationID},
		[]any{data.ID, data.Seq, data.OrgID, data.ProjectID, data.AppInstanceID, data.AppSlug, data.Message,
			data.CorrelationID})
	require.Equal(t, data.OrgID, data.TenantID, "one tenant, under its name and the first one")
	require.JSONEq(t, `{"n":"hello"}`, string(data.Payload))
	require.Nil(t, data.OperationID)
	after, err := l.verbs.Feeds.Parse(data.Cursor)
	require.NoError(t, err)
	require.Equal(t, l.verbs.Feeds.Cursor(after), l.now(row.ID).Cursor, "the webhook stands where its last event does")

	found, err := l.verbs.Deliveries(l.admin, row.ID, []lifecycle.DeliveryState{lifecycle.DeliveryDelivered},
		page.Args{First: 5})
	require.NoError(t, err)
	require.Len(t, found.Rows, 1)
	delivery := found.Rows[0]
	require.Equal(t, one.id, string(delivery.ID))
	require.Equal(t, []any{stored.ID, 1, 204, ""}, []any{delivery.EventID, delivery.Attempts, *delivery.ResponseStatus,
		delivery.Error})
	require.NotNil(t, l.now(row.ID).LastDeliveredAt)
	require.EqualValues(t, 1, stats.Delivered.Load())
}

func TestAReceiverThatFailsIsTriedUntilItTakesIt(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	stats := &webhook.Stats{}
	l.work(func(c *webhook.Config) { c.Stats = stats })
	to := l.receiver()
	to.answers(func(n int, _ got, w http.ResponseWriter) {
		if n <= 6 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	row, _ := l.hook(to.URL)
	l.happen(lifecycle.EventInstanceHealthy, "at last")
	l.settled(lifecycle.DeliveryDelivered, 1)
	requests := to.requests()
	require.Len(t, requests, 7)
	for _, one := range requests {
		require.Equal(t, requests[0].id, one.id, "the same id at every try")
	}
	require.Nil(t, l.now(row.ID).FailingSince)
	require.Empty(t, l.now(row.ID).LastError)
	require.EqualValues(t, 6, stats.Failed.Load())
	require.Equal(t, 1, l.Count("webhook_delivery", "attempts = 7 AND error = '' AND next_attempt_at IS NULL"))
}

func TestAPauseBetweenTriesIsKeptByAScheduledJob(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work(func(c *webhook.Config) { c.Pace.Backoff = func(int) time.Duration { return 200 * time.Millisecond } })
	to := l.receiver()
	to.answers(func(n int, _ got, w http.ResponseWriter) {
		if n == 1 {
			w.WriteHeader(http.StatusBadGateway)
		}
	})
	l.hook(to.URL)
	l.happen(lifecycle.EventInstanceHealthy, "later")
	l.settled(lifecycle.DeliveryDelivered, 1)
	require.Len(t, to.requests(), 2)
	l.until("both jobs have ended", func() bool {
		return l.Count("river.river_job", "kind = 'webhook_serve' AND state = 'completed'") == 2
	})
}

func TestWhatIsGivenUpIsListedAndSentAgainOnRequest(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	stats := &webhook.Stats{}
	l.work(func(c *webhook.Config) { c.Stats = stats })
	to := l.receiver()
	to.answers(status(http.StatusInternalServerError))
	row, _ := l.hook(to.URL)
	l.happen(lifecycle.EventInstanceHealthy, "dear")
	l.settled(lifecycle.DeliveryDead, 1)
	require.Len(t, to.requests(), 8)
	dead, err := l.verbs.Deliveries(l.admin, row.ID, []lifecycle.DeliveryState{lifecycle.DeliveryDead},
		page.Args{First: 5})
	require.NoError(t, err)
	require.Equal(t, "the receiver answered 500", dead.Rows[0].Error)
	require.Equal(t, 500, *dead.Rows[0].ResponseStatus)
	failing := l.now(row.ID)
	require.NotNil(t, failing.FailingSince)
	require.Equal(t, "the receiver answered 500", failing.LastError)
	require.EqualValues(t, 1, stats.Dead.Load())

	to.answers(nil)
	again, err := l.verbs.Redeliver(l.admin, dead.Rows[0].ID)
	require.NoError(t, err)
	require.Equal(t, lifecycle.DeliveryPending, again.State)
	l.settled(lifecycle.DeliveryDelivered, 1)
	requests := to.requests()
	require.Equal(t, requests[0].id, requests[8].id)
	require.Nil(t, l.now(row.ID).FailingSince)
}

func TestAReplaySendsExactlyWhatCameAfterTheCursor(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work(nil)
	to := l.receiver()
	row, _ := l.hook(to.URL)
	l.happen(lifecycle.EventInstanceHealthy, "1", "2", "3", "4", "5")
	l.settled(lifecycle.DeliveryDelivered, 5)
	first := map[string]got{}
	for _, one := range to.requests() {
		first[one.event.Data.Message] = one
	}
	_, err := l.verbs.Replay(l.admin, row.ID, first["2"].event.Data.Cursor, "the disk was full")
	require.NoError(t, err)
	l.until("all is sent again", func() bool { return len(to.requests()) == 8 })
	l.settled(lifecycle.DeliveryDelivered, 5)
	require.ElementsMatch(t, []string{"3", "4", "5"}, to.messages()[5:])
	for _, one := range to.requests()[5:] {
		require.Equal(t, first[one.event.Data.Message].id, one.id)
	}
	require.Equal(t, first["5"].event.Data.Cursor, l.now(row.ID).Cursor)
}

func TestAPausedWebhookLosesNothing(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work(nil)
	to := l.receiver()
	row, _ := l.hook(to.URL)
	l.happen(lifecycle.EventInstanceHealthy, "before")
	l.settled(lifecycle.DeliveryDelivered, 1)
	yes, no := true, false
	_, err := l.verbs.Update(l.admin, verbs.UpdateInput{WebhookID: row.ID, Paused: &yes})
	require.NoError(t, err)
	l.happen(lifecycle.EventInstanceHealthy, "meanwhile 1", "meanwhile 2")
	other := l.receiver() // what others get shows that the events were there to be sent
	l.hook(other.URL)
	l.happen(lifecycle.EventInstanceHealthy, "meanwhile 3")
	// It begins where the feed can be read in order, which a transaction elsewhere may hold back to an earlier event.
	l.until("the other gets it", func() bool { return slices.Contains(other.messages(), "meanwhile 3") })
	require.Equal(t, []string{"before"}, to.messages())
	require.Equal(t, 1, l.Count("webhook_delivery", "webhook_id = $1", row.ID), "they wait in the feed")
	_, err = l.verbs.Update(l.admin, verbs.UpdateInput{WebhookID: row.ID, Paused: &no})
	require.NoError(t, err)
	l.until("it gets what it has missed", func() bool {
		return l.Count("webhook_delivery", "webhook_id = $1 AND state = 'DELIVERED'", row.ID) == 4
	})
	require.ElementsMatch(t, []string{"before", "meanwhile 1", "meanwhile 2", "meanwhile 3"}, to.messages())
}

func TestWhileASecretIsRotatedBothSign(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work(nil)
	to := l.receiver()
	row, old := l.hook(to.URL)
	rotated, err := l.verbs.Rotate(l.admin, row.ID, 3600)
	require.NoError(t, err)
	l.happen(lifecycle.EventInstanceHealthy, "both")
	l.settled(lifecycle.DeliveryDelivered, 1)
	both := to.requests()[0]
	for _, secret := range []string{old, *rotated.Secret} {
		reference, err := standard.NewWebhook(secret)
		require.NoError(t, err)
		require.NoError(t, reference.Verify(both.body, both.header))
	}
	last, err := l.verbs.Rotate(l.admin, row.ID, 0)
	require.NoError(t, err)
	l.happen(lifecycle.EventInstanceHealthy, "one")
	l.settled(lifecycle.DeliveryDelivered, 2)
	alone := to.requests()[1]
	require.NoError(t, sdk.Verify(*last.Secret, alone.header, alone.body, time.Now()))
	require.ErrorIs(t, sdk.Verify(*rotated.Secret, alone.header, alone.body, time.Now()), sdk.ErrSignature)
	require.NotContains(t, alone.header.Get(sdk.HeaderSignature), " ")
	l.noSecretIsAnywhere(old, *rotated.Secret, *last.Secret)
}

// noSecretIsAnywhere greps every sink.
func (l *lab) noSecretIsAnywhere(secrets ...string) {
	l.TB.Helper()
	for _, secret := range secrets {
		secret = strings.TrimPrefix(secret, "whsec_")
		require.NotContains(l.TB, l.log.String(), secret)
		for _, table := range []string{"webhook", "webhook_delivery", "audit_entry", "idempotency",
			"app_instance_event", "river.river_job"} {
			require.Zero(l.TB, l.Count(table+" AS x",
				"x::text LIKE '%' || $1 || '%' OR x::text LIKE '%' || encode($1::bytea, 'hex') || '%'", secret), table)
		}
	}
}

func TestDeletedWebhooksAndProjectsAreServedNoMore(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(l *lab, id ids.ID){
		"webhook": func(l *lab, id ids.ID) {
			_, err := l.verbs.Delete(l.admin, id, "")
			require.NoError(l.TB, err)
		},
		"project": func(l *lab, _ ids.ID) {
			l.SQL(`UPDATE project SET deleted_at = now()`)
			l.DB.Wake(verbs.ListTopic, verbs.Topic(l.project.ID))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.work(nil)
			to := l.receiver()
			entered, leave := make(chan struct{}, 8), make(chan struct{})
			to.answers(func(_ int, _ got, w http.ResponseWriter) {
				entered <- struct{}{}
				<-leave
				w.WriteHeader(http.StatusInternalServerError)
			})
			row, _ := l.hook(to.URL)
			l.happen(lifecycle.EventInstanceHealthy, "last")
			<-entered
			end(l, row.ID)
			close(leave)
			l.until("its job has ended", func() bool {
				return l.Count("river.river_job", "kind = 'webhook_serve' AND state = 'completed'") > 0 &&
					l.Count("river.river_job", "kind = 'webhook_serve' AND state <> 'completed'") == 0
			})
			require.Len(t, to.requests(), 1, "it failed, and is not tried again")
		})
	}
}

func TestAWebhookThatFailsForFiveDaysIsServedNoMoreUntilItIsResumed(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work(nil)
	to := l.receiver()
	to.answers(status(http.StatusInternalServerError))
	row, _ := l.hook(to.URL)
	l.SQL(`UPDATE webhook SET failing_since = now() - interval '6 days'`)
	l.happen(lifecycle.EventInstanceHealthy, "x")
	l.until("it is failing", func() bool { return l.now(row.ID).Status == lifecycle.WebhookFailing })
	sent := len(to.requests())
	_, err := l.verbs.Redeliver(l.admin, l.Ent.WebhookDelivery.Query().OnlyX(t.Context()).ID)
	require.True(t, fault.Is(err, fault.FailedPrecondition), "%v", err)
	to.answers(nil)
	no := false
	_, err = l.verbs.Update(l.admin, verbs.UpdateInput{WebhookID: row.ID, Paused: &no})
	require.NoError(t, err)
	l.settled(lifecycle.DeliveryDelivered, 1)
	require.Len(t, to.requests(), sent+1)
}

func TestAnAddressInsideIsRefusedWhenItIsDialled(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work(func(c *webhook.Config) { c.Dial = dial.Policy{} })
	to := l.receiver()
	row, _ := l.hook(to.URL)
	l.happen(lifecycle.EventInstanceHealthy, "x")
	l.settled(lifecycle.DeliveryDead, 1)
	require.Empty(t, to.requests())
	require.Equal(t, "the operator does not allow webhooks to this address", l.now(row.ID).LastError,
		"and nothing of what is there")
}
