package edge

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"github.com/gpuaas/app-platform/transport"
)

// Bounds of guesses. A user who mistypes, or still has a credential that has ended, does not meet them; a client that
// tries one secret after another waits twice as long after each.
const (
	freeGuesses  = 10              // different wrong secrets at once, of one address or for one credential
	guessRefill  = 6 * time.Second // after which one more is free
	firstPenalty = time.Second
	maxPenalty   = 5 * time.Minute
)

// Guesses slow down callers whose credentials turn out to be wrong, by network address and by the credential that a
// secret claims to be of. It is safe for concurrent use.
//
// A secret that entered lately is let through at once, so that no caller that has the right one is kept out by the
// guesses of others behind the same address; and the guesses of others for its credential count only against addresses
// that have guessed at it themselves. One wrong secret shown again and again, as a forgotten job does, counts once.
type Guesses struct {
	addresses, credentials *table[penalty]
	tried                  *table[struct{}] // network with a wrong secret, network with a claimed credential
	entered                *table[struct{}] // secrets that were right
	failed, refused        prometheus.Counter
	now                    func() time.Time
}

// penalty is the failures of one key.
type penalty struct {
	free  *rate.Limiter
	times int // waits in a row
	until time.Time
}

// Attempt is one use of a credential.
type Attempt struct {
	// Address is the caller's.
	Address string
	// Credential is the public id that the secret claims to belong to; empty when it names none.
	Credential string
	// Secret distinguishes one secret from another; only its seeded hash is kept.
	Secret string
}

// NewGuesses returns a Guesses that has seen none.
func NewGuesses() *Guesses {
	return &Guesses{
		addresses: newTable[penalty](), credentials: newTable[penalty](), tried: newTable[struct{}](),
		entered: newTable[struct{}](),
		failed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "app_platform_edge_wrong_credentials_total",
			Help: "Credentials, login codes and login states that turned out to be wrong; a repeated one counts once.",
		}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "app_platform_edge_guesses_refused_total",
			Help: "Credentials refused without a check, because too many before them were wrong.",
		}),
		now: time.Now,
	}
}

// Collectors returns the counters, for the metrics.
func (g *Guesses) Collectors() []prometheus.Collector {
	return []prometheus.Collector{g.failed, g.refused}
}

// Check refuses an attempt that must wait: RATE_LIMITED with the time that is left. It is called before the credential
// is looked up.
func (g *Guesses) Check(attempt Attempt) error {
	if g.entered.look(func(*struct{}) {}, attempt.Secret) {
		return nil
	}
	now, network := g.now(), Network(attempt.Address)
	var wait time.Duration
	ask := func(p *penalty) { wait = max(wait, p.until.Sub(now)) }
	g.addresses.look(ask, network)
	if attempt.Credential != "" && g.tried.look(func(*struct{}) {}, network, "of", attempt.Credential) {
		g.credentials.look(ask, attempt.Credential)
	}
	if wait <= 0 {
		return nil
	}
	g.refused.Inc()
	return &transport.Error{
		Code: transport.CodeRateLimited, Message: "too many wrong credentials: wait before the next", Retryable: true,
		RetryAfter: wait,
	}
}

// Failed notes that an attempt's secret was wrong.
func (g *Guesses) Failed(attempt Attempt) {
	g.entered.drop(attempt.Secret)
	network := Network(attempt.Address)
	if g.tried.look(func(*struct{}) {}, network, attempt.Secret) {
		return
	}
	g.failed.Inc()
	now := g.now()
	g.tried.use(func(*struct{}) {}, network, attempt.Secret)
	g.addresses.use(func(p *penalty) { p.failed(now) }, network)
	if attempt.Credential != "" {
		g.tried.use(func(*struct{}) {}, network, "of", attempt.Credential)
		g.credentials.use(func(p *penalty) { p.failed(now) }, attempt.Credential)
	}
}

// Outcome notes whether an attempt's secret was right.
func (g *Guesses) Outcome(attempt Attempt, entered bool) {
	if !entered {
		g.Failed(attempt)
		return
	}
	if !g.entered.look(func(*struct{}) {}, attempt.Secret) {
		g.entered.use(func(*struct{}) {}, attempt.Secret)
	}
}

// failed counts one failure, and sets the next wait when no free one was left.
func (p *penalty) failed(now time.Time) {
	if p.free == nil {
		p.free = rate.NewLimiter(rate.Every(guessRefill), freeGuesses)
	}
	if now.Sub(p.until) >= guessRefill*freeGuesses {
		p.times = 0 // it was quiet for so long after the last wait that it begins anew
	}
	if p.free.AllowN(now, 1) && p.times == 0 {
		return
	}
	wait := maxPenalty
	if p.times < 16 && firstPenalty<<p.times < maxPenalty {
		wait = firstPenalty << p.times
	}
	p.times++
	p.until = now.Add(wait)
}
