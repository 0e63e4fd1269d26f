package webhook

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/ent/generated/db"
	sdk "github.com/gpuaas/app-platform/sdk/webhook"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

func TestEightTriesTakeAboutADay(t *testing.T) {
	t.Parallel()
	var pace Pace
	pace.complete()
	var all time.Duration
	for try := 1; try < maxTries; try++ {
		pause := pace.Backoff(try)
		require.InDelta(t, backoffs[try-1].Seconds(), pause.Seconds(), 0.2*backoffs[try-1].Seconds()+0.01)
		all += backoffs[try-1]
	}
	require.InDelta(t, 24, all.Hours(), 1)
	require.Equal(t, 5*time.Second, pace.Rest(0))
	require.Equal(t, time.Minute, pace.Rest(4*time.Minute))
	require.Equal(t, 5*time.Minute, pace.Rest(100*time.Hour))
}

func TestAReceiverPutsADeliveryOffForAnHourAtMost(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "30": 30 * time.Second, "-5": 0, "86400": time.Hour, "99999999999999999999": 0, "soon": 0, "1.5": 0,
		now.Add(10 * time.Minute).Format(http.TimeFormat): 10 * time.Minute,
		now.Add(-time.Minute).Format(http.TimeFormat):     0,
		now.AddDate(1, 0, 0).Format(http.TimeFormat):      time.Hour,
	} {
		require.Equal(t, want, retryAfter(value, now), value)
	}
}

func TestABodyThatWouldBeTooLongLeavesItsDetailsOut(t *testing.T) {
	t.Parallel()
	of := func(n int) *event.Event {
		return &event.Event{Event: &db.Event{ID: "evt_1", Type: "apps.instance.healthy", Message: "m",
			Payload: json.RawMessage(`{"x":"` + strings.Repeat("y", n) + `"}`)}}
	}
	small, err := body(of(10))
	require.NoError(t, err)
	require.NotContains(t, string(small), "payloadOmitted")
	long, err := body(of(sdk.MaxBody))
	require.NoError(t, err)
	require.Less(t, len(long), sdk.MaxBody)
	var read sdk.Event
	require.NoError(t, json.Unmarshal(long, &read))
	require.True(t, read.Data.PayloadOmitted)
	require.Equal(t, "evt_1", read.Data.ID)
}

func TestAnAnswerIsJudged(t *testing.T) {
	t.Parallel()
	for code, want := range map[int]result{
		200: {ok: true, status: 200}, 299: {ok: true, status: 299},
		302: {status: 302, text: "the receiver answered 302: redirects are not followed"},
		404: {status: 404, text: "the receiver answered 404", after: 7 * time.Second},
		410: {status: 410, gone: true, text: "the receiver answered 410", after: 7 * time.Second},
		503: {status: 503, text: "the receiver answered 503", after: 7 * time.Second},
	} {
		recorded := httptest.NewRecorder()
		recorded.Header().Set("Retry-After", "7")
		recorded.WriteHeader(code)
		var got result
		got.judge(recorded.Result(), time.Now())
		require.Equal(t, want, got, code)
	}
	require.Equal(t, 2, inARow(1, []result{{}, {ok: true}, {}, {}}))
	require.Equal(t, 3, inARow(1, []result{{}, {}}))
}
