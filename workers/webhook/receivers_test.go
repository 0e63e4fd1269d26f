package webhook_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/workers/webhook"
)

func TestAReceiverThatIsGonePausesItsWebhook(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work(nil)
	to := l.receiver()
	to.answers(status(http.StatusGone))
	row, _ := l.hook(to.URL)
	l.happen(lifecycle.EventInstanceHealthy, "x")
	l.until("it is paused", func() bool { return l.now(row.ID).Status == lifecycle.WebhookPaused })
	require.Equal(t, "the receiver answered 410", l.now(row.ID).LastError)
	require.Len(t, to.requests(), 1)
}

func TestARedirectIsAFailureAndIsNotFollowed(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work(nil)
	to, elsewhere := l.receiver(), l.receiver()
	to.answers(func(n int, _ got, w http.ResponseWriter) {
		if n == 1 {
			w.Header().Set("Location", elsewhere.URL)
			w.WriteHeader(http.StatusTemporaryRedirect)
			return
		}
		_, _ = w.Write([]byte(strings.Repeat("x", 1<<20))) // more than is read
	})
	l.hook(to.URL)
	l.happen(lifecycle.EventInstanceHealthy, "x")
	l.settled(lifecycle.DeliveryDelivered, 1)
	require.Empty(t, elsewhere.requests())
	require.Len(t, to.requests(), 2)
}

func TestADeadReceiverDoesNotHoldUpTheOthers(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	leave := make(chan struct{})
	stuck := l.receiver()
	stuck.answers(func(int, got, http.ResponseWriter) { <-leave })
	defer close(leave)
	well := l.receiver()
	l.hook(stuck.URL)
	row, _ := l.hook(well.URL)
	const many = 60
	for n := range many {
		l.happen(lifecycle.EventInstanceHealthy, fmt.Sprint(n))
	}
	// none is given up meanwhile, after which another would be sent
	l.work(func(c *webhook.Config) { c.Pace.Request = patience })
	l.until("all has come to the one that is well", func() bool {
		return l.Count("webhook_delivery", "webhook_id = $1 AND state = 'DELIVERED'", row.ID) == many
	})
	require.LessOrEqual(t, len(stuck.requests()), 4, "and no more than four at once wait for the other")
}
