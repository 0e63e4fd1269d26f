package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// maxEnds bounds what ends: certificates of the edge and of adapters, and authorities.
const maxEnds = 8

var endsDesc = prometheus.NewDesc(prefix+"certificate_days_left",
	"Days until a certificate expires, negative after that: the edge's, the one that adapters receive, and the first "+
		"to expire of those pinned for adapters.",
	[]string{"of"}, nil)

// ends are the certificates whose end is published.
type ends struct {
	mu sync.Mutex
	of map[string]func() time.Time
}

func newEnds() *ends { return &ends{of: make(map[string]func() time.Time)} }

// Ends publishes when a certificate ends; the zero time for none.
func (s *Set) Ends(of string, at func() time.Time) {
	if s == nil {
		return
	}
	s.ends.mu.Lock()
	defer s.ends.mu.Unlock()
	if len(s.ends.of) < maxEnds {
		s.ends.of[of] = at
	}
}

// Describe implements prometheus.Collector.
func (e *ends) Describe(into chan<- *prometheus.Desc) { into <- endsDesc }

// Collect implements prometheus.Collector.
func (e *ends) Collect(into chan<- prometheus.Metric) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for of, at := range e.of {
		if end := at(); !end.IsZero() {
			into <- prometheus.MustNewConstMetric(endsDesc, prometheus.GaugeValue, time.Until(end).Hours()/24, of)
		}
	}
}
