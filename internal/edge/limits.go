package edge

import (
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/gorilla/websocket"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"github.com/gpuaas/app-platform/transport"
)

// burstSeconds is how many seconds' worth of requests a caller that was quiet may send at once.
const burstSeconds = 5

// Config is how much one caller may request. A bound of 0 is off.
type Config struct {
	// SubjectRate and SubjectAtOnce bound the operations of one credential: those per second, and those under way.
	SubjectRate   float64
	SubjectAtOnce int
	// AddressRate and AddressAtOnce bound the requests of one network address.
	AddressRate   float64
	AddressAtOnce int
	// SocketRate and LoginRate bound, for one address and per second, the sockets opened and the requests to /auth/.
	SocketRate float64
	LoginRate  float64
	// DeliveryRate and DeliveryAtOnce bound the parts of artifacts that one address fetches, apart from the rest: they
	// take long, and many nodes may share an address.
	DeliveryRate   float64
	DeliveryAtOnce int
}

// DefaultConfig returns bounds that no regular work meets, by hand or by program.
func DefaultConfig() Config {
	return Config{SubjectRate: 200, SubjectAtOnce: 32, AddressRate: 1000, AddressAtOnce: 256, SocketRate: 100,
		LoginRate:    20,
		DeliveryRate: 200, DeliveryAtOnce: 128}
}

// Limits count what callers request. It is safe for concurrent use.
type Limits struct {
	subject, address, socket, login, delivery *limit
	refused                                   *prometheus.CounterVec
	now                                       func() time.Time
}

// limit is one kind of bound with the budgets of its callers.
type limit struct {
	name   string
	rate   rate.Limit
	atOnce int
	table  *table[budget]
}

// budget is what one caller has left.
type budget struct {
	tokens *rate.Limiter
	busy   int
}

// NewLimits returns limits that have counted nothing.
func NewLimits(config Config) *Limits {
	return &Limits{
		subject:  newLimit("subject", config.SubjectRate, config.SubjectAtOnce),
		address:  newLimit("address", config.AddressRate, config.AddressAtOnce),
		socket:   newLimit("socket", config.SocketRate, 0),
		login:    newLimit("login", config.LoginRate, 0),
		delivery: newLimit("delivery", config.DeliveryRate, config.DeliveryAtOnce),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "app_platform_edge_refused_total",
			Help: "Requests refused because there were too many, by the bound that they exceeded.",
		}, []string{"bound"}),
		now: time.Now,
	}
}

func newLimit(name string, perSecond float64, atOnce int) *limit {
	return &limit{name: name, rate: rate.Limit(perSecond), atOnce: atOnce, table: newTable[budget]()}
}

// Collector counts refusals, for the metrics.
func (l *Limits) Collector() prometheus.Collector { return l.refused }

// Subject takes one operation of a credential; release gives its place among those under way back. RATE_LIMITED with
// the time to wait when the credential requests too much.
func (l *Limits) Subject(fingerprint string) (release func(), err error) {
	return l.take(l.subject, fingerprint)
}

// Handler refuses what one address requests beyond its bounds, before anything is read of it: operations, sockets,
// logins and parts of artifacts. Other requests pass.
func (l *Limits) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		release, err := l.admit(r)
		if err != nil {
			Refuse(w, r, err)
			return
		}
		defer release()
		next.ServeHTTP(w, r)
	})
}

// admit counts a request for its address.
func (l *Limits) admit(r *http.Request) (release func(), err error) {
	network := Network(Address(r))
	switch {
	case strings.HasPrefix(r.URL.Path, "/auth/"), strings.HasPrefix(r.URL.Path, "/.platform/"): // a ticket is a login
		if _, err := l.take(l.login, network); err != nil {
			return nil, err
		}
	case strings.HasPrefix(r.URL.Path, "/v1/artifacts/"):
		return l.take(l.delivery, network)
	case r.URL.Path == "/v1/connect", r.URL.Path == "/v1/exec":
		return l.take(l.socket, network)
	case r.URL.Path != "/graphql":
		return func() {}, nil
	case r.Method == http.MethodGet && websocket.IsWebSocketUpgrade(r):
		return l.take(l.socket, network)
	case r.Method != http.MethodPost:
		return func() {}, nil
	}
	return l.take(l.address, network)
}

// take counts one for a key.
func (l *Limits) take(bound *limit, key string) (release func(), err error) {
	if bound.rate <= 0 && bound.atOnce <= 0 || key == "" {
		return func() {}, nil
	}
	var wait time.Duration
	var held *budget
	bound.table.use(func(b *budget) { wait, held = b.take(bound, l.now()), b }, key)
	if wait > 0 {
		l.refused.WithLabelValues(bound.name).Inc()
		return nil, tooFast(wait)
	}
	if bound.atOnce <= 0 {
		return func() {}, nil
	}
	// A budget that was forgotten meanwhile is not given back.
	return func() { bound.table.look(func(b *budget) { b.release(held) }, key) }, nil
}

// take returns how long the caller must wait; 0 when it may go on, and is counted.
func (b *budget) take(bound *limit, now time.Time) time.Duration {
	if bound.atOnce > 0 && b.busy >= bound.atOnce {
		return time.Second
	}
	if bound.rate > 0 {
		if b.tokens == nil {
			b.tokens = rate.NewLimiter(bound.rate, max(1, int(math.Ceil(float64(bound.rate)*burstSeconds))))
		}
		if !b.tokens.AllowN(now, 1) {
			return time.Duration((1 - b.tokens.TokensAt(now)) / float64(bound.rate) * float64(time.Second))
		}
	}
	if bound.atOnce > 0 {
		b.busy++
	}
	return 0
}

func (b *budget) release(held *budget) {
	if b == held && b.busy > 0 {
		b.busy--
	}
}

// tooFast returns the refusal of a caller that requests too much.
func tooFast(wait time.Duration) *transport.Error {
	return &transport.Error{Code: transport.CodeRateLimited, Message: "too many requests: slow down", Retryable: true,
		RetryAfter: wait}
}
