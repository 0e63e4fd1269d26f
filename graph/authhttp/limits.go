package authhttp

import (
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	burst        = 10              // failed logins an address may have at once
	refill       = 6 * time.Second // after which it may have one more
	maxAddresses = 10_000          // addresses that are told apart; the rest share one budget
)

// limits counts the failed logins of addresses.
type limits struct {
	mu     sync.Mutex
	known  map[string]*rate.Limiter
	others *rate.Limiter
}

func newLimits() *limits {
	return &limits{known: make(map[string]*rate.Limiter), others: fresh()}
}

func fresh() *rate.Limiter { return rate.NewLimiter(rate.Every(refill), burst) }

// wait is how long an address must wait before it may try again; 0 when it may now.
func (l *limits) wait(address string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	limiter, ok := l.known[network(address)]
	if !ok {
		if len(l.known) < maxAddresses {
			return 0
		}
		limiter = l.others
	}
	if missing := 1 - limiter.Tokens(); missing > 0 {
		return time.Duration(missing * float64(refill))
	}
	return 0
}

// failed counts one failure.
func (l *limits) failed(address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := network(address)
	limiter, ok := l.known[key]
	switch {
	case ok:
	case len(l.known) >= maxAddresses && !l.forget():
		limiter = l.others
	default:
		limiter = fresh()
		l.known[key] = limiter
	}
	limiter.Allow()
}

// forget drops the addresses whose budget is whole again; it says whether there is room now.
func (l *limits) forget() bool {
	for address, limiter := range l.known {
		if limiter.Tokens() >= burst {
			delete(l.known, address)
		}
	}
	return len(l.known) < maxAddresses
}

// network is what one caller can change at will: an IPv4 address, or the /64 of an IPv6 one.
func network(address string) string {
	parsed, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	parsed = parsed.Unmap().WithZone("")
	if parsed.Is4() {
		return parsed.String()
	}
	prefix, err := parsed.Prefix(64)
	if err != nil {
		return address
	}
	return prefix.String()
}
