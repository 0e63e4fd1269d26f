package metrics

import (
	"context"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gpuaas/app-platform/domain/fault"
)

// Verbs of operations that are not of one root field.
const (
	several = "several" // root fields
	refused = "refused" // before its document was understood
)

// maxErrors bounds the pairs of a verb and a code that are counted by both.
const maxErrors = 600

// maxPatterns bounds the paths of HTTP outside of GraphQL.
const maxPatterns = 32

// fences are the verbs that are refused with STALE_FENCE, and whose report it is that came too late: an agent's on a
// task that was dispatched again, an adapter's on an attempt before the present one.
var fences = map[string]string{"reportNodeTask": fenceTask, "appendNodeTaskOutput": fenceTask,
	"reportOperation": fenceReport}

// Fences that refuse what comes from before: of a worker's claim, of a dispatch to an adapter, of an adapter's report,
// and of an agent's.
const (
	FenceClaim    = "claim"
	FenceDispatch = "dispatch"
	fenceReport   = "report"
	fenceTask     = "task"
)

// requests counts what callers request.
type requests struct {
	verbs    map[string]string
	took     *prometheus.HistogramVec
	errors   pairs
	fenced   *prometheus.CounterVec
	http     *prometheus.CounterVec
	patterns label
}

func (r *requests) begin(s *Set, verbs map[string]string) {
	r.verbs = verbs
	r.took = s.histogram(len(verbs)+3, "request_seconds",
		"Time from a GraphQL operation's arrival to its answer, of a subscription until it has begun, by root field.",
		[]float64{.005, .025, .1, .5, 2.5}, "kind", "verb")
	r.errors = pairs{most: maxErrors, vec: s.counter(maxErrors+codes(), "request_errors_total",
		"GraphQL operations that were answered with an error, by root field and code of the first error.",
		"verb", "code")}
	r.fenced = s.counter(4, "fence_refusals_total",
		"Stale requests that were refused, by fence: a worker's claim, an adapter's dispatch, an adapter's report, a "+
			"node's task.",
		"fence")
	for _, fence := range []string{FenceClaim, FenceDispatch, fenceReport, fenceTask} {
		r.fenced.WithLabelValues(fence)
	}
	r.patterns.most = maxPatterns
	r.http = s.counter(maxPatterns*6, "http_requests_total",
		"HTTP requests outside of GraphQL, by the pattern that served them and the class of the answer.", "pattern",
		"class")
}

// Request counts an answered GraphQL operation.
func (s *Set) Request(ctx context.Context, kind string, verbs []string, code string, took time.Duration) {
	if s == nil {
		return
	}
	verb := s.requests.verb(verbs)
	if kind == "" {
		kind = "none"
	}
	if of, known := s.requests.verbs[verb]; known {
		kind = of
	} else if verb != several {
		kind = "none"
	}
	observe(ctx, s.requests.took.WithLabelValues(kind, verb), took)
	if code == "" {
		return
	}
	s.requests.errors.inc(verb, knownCode(code))
	if fence := fences[verb]; fence != "" && code == string(fault.StaleFence) {
		s.Fenced(fence)
	}
}

// verb returns what an operation is counted as.
func (r *requests) verb(verbs []string) string {
	switch len(verbs) {
	case 0:
		return refused
	case 1:
		if _, known := r.verbs[verbs[0]]; known {
			return verbs[0]
		}
		return other
	}
	return several
}

// Fenced counts what a fence refused.
func (s *Set) Fenced(fence string) {
	if s != nil {
		s.requests.fenced.WithLabelValues(fence).Inc()
	}
}

// HTTP counts an answered request outside of GraphQL, by the pattern of the server that answered it.
func (s *Set) HTTP(pattern string, status int) {
	if s == nil {
		return
	}
	if pattern == "" {
		pattern = "none"
	}
	class := other
	if status >= 100 && status < 600 {
		class = strconv.Itoa(status/100) + "xx"
	}
	s.requests.http.WithLabelValues(s.requests.patterns.of(pattern), class).Inc()
}
