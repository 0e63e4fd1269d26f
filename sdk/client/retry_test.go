package client

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestBackoffGrowsUpToItsBound(t *testing.T) {
	t.Parallel()
	for attempt := 1; attempt <= 100; attempt++ {
		delay := backoff(attempt)
		require.GreaterOrEqual(t, delay, firstDelay/2)
		require.LessOrEqual(t, delay, longestDelay)
	}
	require.Less(t, backoff(1), firstDelay)
	require.GreaterOrEqual(t, backoff(50), longestDelay/2)
}

func TestRetryAfterReadsSecondsAndDates(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	cases := map[string]time.Duration{
		"": 0, "0": 0, "7": 7 * time.Second, "-3": 0, "86400": maxRetryAfter, "soon": 0,
		now.Add(9 * time.Second).Format(http.TimeFormat): 9 * time.Second,
		now.Add(-time.Hour).Format(http.TimeFormat):      0,
		now.Add(time.Hour).Format(http.TimeFormat):       maxRetryAfter,
	}
	for value, want := range cases {
		require.Equal(t, want, retryAfter(http.Header{"Retry-After": {value}}, now), value)
	}
}

func TestCorrelationIDsAreCheckedAsThePlatformDoes(t *testing.T) {
	t.Parallel()
	require.True(t, validCorrelationID("aZ0._-"))
	for _, id := range []string{"", "a b", "ä", "a/b", string(make([]byte, 65))} {
		require.False(t, validCorrelationID(id), "%q", id)
	}
}

func TestRecentForgetsTheOldest(t *testing.T) {
	t.Parallel()
	r := newRecent(2)
	require.True(t, r.add("a"))
	require.True(t, r.add("b"))
	require.False(t, r.add("a"))
	require.True(t, r.add("c"))
	require.True(t, r.add("a"), "the bound is two")
	require.Len(t, r.ids, 2)
}
