package edge

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/transport"
)

// clock is a time that a test moves.
type clock struct{ at time.Time }

func newClock() *clock { return &clock{at: time.Unix(1_800_000_000, 0)} }

func (c *clock) now() time.Time            { return c.at }
func (c *clock) advance(by time.Duration)  { c.at = c.at.Add(by) }
func limitsAt(c *clock, of Config) *Limits { l := NewLimits(of); l.now = c.now; return l }

// waits is the time that a refusal names; 0 when there was none.
func waits(t *testing.T, err error) time.Duration {
	t.Helper()
	if err == nil {
		return 0
	}
	refused := new(transport.Error)
	require.True(t, errors.As(err, &refused), "%v", err)
	require.Equal(t, transport.CodeRateLimited, refused.Code)
	require.True(t, refused.Retryable)
	require.Positive(t, refused.RetryAfter)
	return refused.RetryAfter
}

func TestACredentialHasItsBurstAndThenItsRate(t *testing.T) {
	t.Parallel()
	c := newClock()
	l := limitsAt(c, Config{SubjectRate: 2})
	ask := func(who string) time.Duration { _, err := l.Subject(who); return waits(t, err) }
	for range 10 {
		require.Zero(t, ask("a"))
	}
	require.Equal(t, 500*time.Millisecond, ask("a"))
	require.Zero(t, ask("b"), "another has its own")
	c.advance(500 * time.Millisecond)
	require.Zero(t, ask("a"))
	require.Positive(t, ask("a"))
	require.InDelta(t, 2, testutil.ToFloat64(l.refused.WithLabelValues("subject")), 0)
}

func TestOperationsUnderWayAreBoundedUntilTheyEnd(t *testing.T) {
	t.Parallel()
	l := limitsAt(newClock(), Config{SubjectAtOnce: 2})
	first, err := l.Subject("a")
	require.NoError(t, err)
	_, err = l.Subject("a")
	require.NoError(t, err)
	_, err = l.Subject("a")
	require.Equal(t, time.Second, waits(t, err))
	_, err = l.Subject("b")
	require.NoError(t, err)
	first()
	_, err = l.Subject("a")
	require.NoError(t, err)
}

func TestABoundOfZeroIsOff(t *testing.T) {
	t.Parallel()
	l := limitsAt(newClock(), Config{})
	for range 10_000 {
		_, err := l.Subject("a")
		require.NoError(t, err)
	}
	require.Zero(t, testutil.CollectAndCount(l.Collector()))
}

// asks sends one request through the limits.
func asks(l *Limits, method, path, address string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	r.RemoteAddr = address
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	l.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	})).ServeHTTP(w, r)
	return w
}

func TestAnAddressIsBoundByWhatItAsksFor(t *testing.T) {
	t.Parallel()
	upgrade := []string{"Connection", "Upgrade", "Upgrade", "websocket"}
	for name, c := range map[string]struct {
		config       Config
		method, path string
		header       []string
		bound        string
	}{
		"operations":         {Config{AddressRate: 1}, "POST", "/graphql", nil, "address"},
		"sockets":            {Config{SocketRate: 1}, "GET", "/graphql", upgrade, "socket"},
		"parts of artifacts": {Config{DeliveryRate: 1}, "GET", "/v1/artifacts/sha256:0", nil, "delivery"},
		"logins":             {Config{LoginRate: 1}, "POST", "/auth/login", nil, "login"},
		"tickets":            {Config{LoginRate: 1}, "GET", "/.platform/open", nil, "login"},
		"connections":        {Config{SocketRate: 1}, "GET", "/v1/connect", nil, "socket"},
		"commands":           {Config{SocketRate: 1}, "GET", "/v1/exec", nil, "socket"},
		"requests to /auth/": {Config{AddressRate: 1}, "GET", "/auth/x", nil, "address"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := limitsAt(newClock(), c.config)
			for range 5 {
				require.Equal(t, 204, asks(l, c.method, c.path, "192.0.2.1:9", c.header...).Code)
			}
			answer := asks(l, c.method, c.path, "192.0.2.1:10", c.header...)
			require.Equal(t, 429, answer.Code)
			require.Equal(t, "1", answer.Header().Get("Retry-After"))
			require.Contains(t, answer.Body.String(), `"code":"RATE_LIMITED"`)
			require.Contains(t, answer.Body.String(), answer.Header().Get("X-Correlation-ID"))
			require.Equal(t, 204, asks(l, c.method, c.path, "192.0.2.2:9", c.header...).Code, "another address")
			require.Equal(t, 204, asks(l, "GET", "/healthz", "192.0.2.1:9").Code, "what costs nothing")
			require.InDelta(t, 1, testutil.ToFloat64(l.refused.WithLabelValues(c.bound)), 0)
		})
	}
}

func TestANetworkThatOneCallerCanMoveInIsOneAddress(t *testing.T) {
	t.Parallel()
	l := limitsAt(newClock(), Config{AddressRate: 1})
	for i := range 5 {
		require.Equal(t, 204, asks(l, "POST", "/graphql", fmt.Sprintf("[2001:db8::%x]:9", i+1)).Code)
	}
	require.Equal(t, 429, asks(l, "POST", "/graphql", "[2001:db8::ffff]:9").Code)
	require.Equal(t, 204, asks(l, "POST", "/graphql", "[2001:db8:0:1::1]:9").Code)
	for range 5 {
		require.Equal(t, 204, asks(l, "POST", "/graphql", "[::ffff:192.0.2.1]:9").Code)
	}
	require.Equal(t, 429, asks(l, "POST", "/graphql", "192.0.2.1:9").Code)
}

func TestATableForgetsWhoWasSeenLongestAgo(t *testing.T) {
	t.Parallel()
	table := newTable[int]()
	for i := range 2 * shards * perShard {
		table.use(func(n *int) { *n = i + 1 }, "flood", fmt.Sprint(i))
		table.use(func(n *int) { *n++ }, "regular")
	}
	kept := 0
	for i := range table.shards {
		require.LessOrEqual(t, len(table.shards[i].entries), perShard)
		kept += len(table.shards[i].entries)
	}
	require.Greater(t, kept, shards*perShard*9/10)
	require.True(t, table.look(func(n *int) { require.Equal(t, 2*shards*perShard, *n) }, "regular"),
		"who comes often stays")
	require.False(t, table.look(func(*int) {}, "flood", "0"))
	table.drop("regular")
	require.False(t, table.look(func(*int) {}, "regular"))
	for i := range table.shards { // the ring and the map hold the same
		s := &table.shards[i]
		in := 0
		for one := s.newest.next; ; one = one.next {
			in++
			if one == s.newest {
				break
			}
		}
		require.Equal(t, len(s.entries), in)
	}
}

func TestAForgottenCallersPlaceIsGivenBackToNobody(t *testing.T) {
	t.Parallel()
	l := limitsAt(newClock(), Config{SubjectAtOnce: 1})
	release, err := l.Subject("a")
	require.NoError(t, err)
	l.subject.table.drop("a")
	_, err = l.Subject("a")
	require.NoError(t, err)
	release()
	_, err = l.Subject("a")
	require.Positive(t, waits(t, err), "the new one is still under way")
}

func TestMetricsAreRegisteredOnce(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	require.NoError(t, registry.Register(NewLimits(DefaultConfig()).Collector()))
	for _, one := range NewGuesses().Collectors() {
		require.NoError(t, registry.Register(one))
	}
}
