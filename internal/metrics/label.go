package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gpuaas/app-platform/domain/fault"
)

// other is the label of whatever is not known, or too much.
const other = "other"

// knownCode returns a code of the catalogue, and other for any other text: adapters write codes of their own.
func knownCode(code string) string {
	if fault.Code(code).Known() {
		return code
	}
	return other
}

// codes is how many codes there are, with other.
func codes() int { return len(fault.Catalogue()) + 1 }

// label bounds the values of a label: the first that come are counted by name, and the rest as other. Values are the
// platform's own names, of which there are fewer; the bound is for a later label whose values are not.
type label struct {
	most int

	mu   sync.Mutex
	seen map[string]struct{}
}

// of returns the value to count under.
func (l *label) of(value string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.seen[value]; ok {
		return value
	}
	if len(l.seen) >= l.most-1 { // one is other
		return other
	}
	if l.seen == nil {
		l.seen = make(map[string]struct{})
	}
	l.seen[value] = struct{}{}
	return value
}

// pairs counts by two labels, of which most pairs are counted by both; further ones are counted by the second alone,
// under other.
type pairs struct {
	vec  *prometheus.CounterVec
	most int

	mu   sync.Mutex
	seen map[[2]string]struct{}
}

// inc counts one.
func (p *pairs) inc(first, second string) {
	if !p.fits([2]string{first, second}) {
		first = other
	}
	p.vec.WithLabelValues(first, second).Inc()
}

func (p *pairs) fits(pair [2]string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.seen[pair]; ok {
		return true
	}
	if len(p.seen) >= p.most {
		return false
	}
	if p.seen == nil {
		p.seen = make(map[[2]string]struct{})
	}
	p.seen[pair] = struct{}{}
	return true
}
