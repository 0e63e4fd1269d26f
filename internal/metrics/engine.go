package metrics

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gpuaas/app-platform/domain/fault"
)

// Bounds of the engine's labels. There are 13 kinds of operation, and about 30 steps.
const (
	maxKinds    = 20
	maxSteps    = 48
	maxBreakers = 20
)

// Outcomes of an attempt, which is what a worker does between claiming an operation and letting go of it.
const (
	AttemptDone   = "done"   // it went on as far as it could: it waits or has ended
	AttemptFenced = "fenced" // it had been taken over or ended meanwhile
	AttemptFailed = "failed" // by an error of the platform's own
	AttemptCut    = "cut"    // the process stops
)

// engine counts what workers do with operations.
type engine struct {
	claims, waited                 prometheus.Observer
	claimsFailed                   prometheus.Counter
	attempts, ended, retries, lost *prometheus.CounterVec
	steps                          *prometheus.HistogramVec
	kinds, names                   label
	load                           load
}

// load reads the present load of a process that carries out operations.
type load struct {
	away  atomic.Pointer[func() []string]
	slots atomic.Pointer[func() (running, waiting int)]
}

func (e *engine) begin(s *Set) {
	e.kinds.most, e.names.most = maxKinds, maxSteps
	e.claims = s.histogram(1, "engine_claim_seconds", "Time that one claim of due operations takes.",
		[]float64{.001, .005, .025, .1, .5, 2.5}).WithLabelValues()
	e.claimsFailed = s.counter(1, "engine_claims_failed_total", "Claims that met an error.").WithLabelValues()
	e.waited = s.histogram(1, "engine_claim_latency_seconds",
		"Time from an operation's acceptance to its first claim by a worker.",
		[]float64{.01, .05, .25, 1, 5, 30, 300}).WithLabelValues()
	e.attempts = s.counter(maxKinds*4, "engine_attempts_total",
		"Attempts at operations, from the claim until it is given back, by kind and outcome.", "kind", "outcome")
	e.ended = s.counter(maxKinds*3, "engine_ended_total", "Operations that ended here, by kind and state.", "kind",
		"state")
	e.retries = s.counter(codes(), "engine_retries_total",
		"Steps that failed and are tried again, by the code of the error.", "code")
	for _, code := range []fault.Code{fault.Internal, fault.AdapterUnavailable} { // so that their first is an increase
		e.retries.WithLabelValues(string(code))
	}
	e.lost = s.counter(2, "engine_leases_total",
		"Leases: heartbeats of this process that were missed, and operations taken from processes that had lost "+
			"theirs.",
		"what")
	e.lost.WithLabelValues("missed")
	e.lost.WithLabelValues("taken")
	e.steps = s.histogram(maxSteps, "engine_step_seconds", "Time that one run of a step takes, by step.",
		[]float64{.005, .05, .5, 5, 30}, "step")
	s.keep(&e.load, 2+1+maxBreakers)
}

// Claimed counts a claim of due operations.
func (s *Set) Claimed(took time.Duration, err error) {
	if s == nil {
		return
	}
	s.engine.claims.Observe(took.Seconds())
	if err != nil {
		s.engine.claimsFailed.Inc()
	}
}

// Waited notes how long an operation had been accepted when a worker claimed it; only the first claim counts.
func (s *Set) Waited(claim int, waited time.Duration) {
	if s != nil && claim == 1 {
		s.engine.waited.Observe(max(waited, 0).Seconds())
	}
}

// Attempt counts an attempt, and with one that was fenced the fence of claims.
func (s *Set) Attempt(kind, outcome string) {
	if s == nil {
		return
	}
	s.engine.attempts.WithLabelValues(s.engine.kinds.of(kind), outcome).Inc()
	if outcome == AttemptFenced {
		s.Fenced(FenceClaim)
	}
}

// Ended counts an operation that ended.
func (s *Set) Ended(kind, state string) {
	if s != nil {
		s.engine.ended.WithLabelValues(s.engine.kinds.of(kind), state).Inc()
	}
}

// Retried is the outcome of a step that is run again after an error.
const Retried = "retried"

// Step notes a run of a step, with its outcome and the code of what it met.
func (s *Set) Step(ctx context.Context, step string, took time.Duration, outcome, code string) {
	if s == nil {
		return
	}
	observe(ctx, s.engine.steps.WithLabelValues(s.engine.names.of(step)), took)
	if outcome == Retried {
		s.engine.retries.WithLabelValues(knownCode(code)).Inc()
	}
}

// LeaseMissed counts a heartbeat that could not be written.
func (s *Set) LeaseMissed() {
	if s != nil {
		s.engine.lost.WithLabelValues("missed").Inc()
	}
}

// LeasesTaken counts operations that were taken from processes that had lost their lease.
func (s *Set) LeasesTaken(operations int) {
	if s != nil {
		s.engine.lost.WithLabelValues("taken").Add(float64(operations))
	}
}

// Works registers a process that carries out operations: away are the adapters that are not called now since they do
// not answer (nil where it calls all), and slots is how many operations have a place among its steps, and how many
// others wait without one.
func (s *Set) Works(away func() []string, slots func() (running, waiting int)) {
	if s == nil {
		return
	}
	if away != nil {
		s.engine.load.away.Store(&away)
	}
	s.engine.load.slots.Store(&slots)
}

var (
	inHandDesc = prometheus.NewDesc(prefix+"engine_operations",
		"Operations that this process carries on now: those with a place among its steps, and those that wait without "+
			"one.",
		[]string{"state"}, nil)
	breakersDesc = prometheus.NewDesc(prefix+"breakers_open",
		"Adapters that this process does not call now since they do not answer.", nil, nil)
	breakerDesc = prometheus.NewDesc(prefix+"breaker_open",
		"1 for an adapter that is not called now, by its registered name; the first 20 of them.",
		[]string{"adapter"}, nil)
)

// Describe implements prometheus.Collector.
func (l *load) Describe(into chan<- *prometheus.Desc) {
	into <- inHandDesc
	into <- breakersDesc
	into <- breakerDesc
}

// Collect implements prometheus.Collector. A process that does not work has none of it.
func (l *load) Collect(into chan<- prometheus.Metric) {
	if slots := l.slots.Load(); slots != nil {
		running, waiting := (*slots)()
		into <- prometheus.MustNewConstMetric(inHandDesc, prometheus.GaugeValue, float64(running), "running")
		into <- prometheus.MustNewConstMetric(inHandDesc, prometheus.GaugeValue, float64(waiting), "waiting")
	}
	away := l.away.Load()
	if away == nil {
		return
	}
	names := (*away)()
	into <- prometheus.MustNewConstMetric(breakersDesc, prometheus.GaugeValue, float64(len(names)))
	slices.Sort(names)
	for _, name := range names[:min(len(names), maxBreakers)] {
		into <- prometheus.MustNewConstMetric(breakerDesc, prometheus.GaugeValue, 1, strings.ToValidUTF8(name, ""))
	}
}

// Outcome returns what an attempt came to: fenced reports whether its error states that the claim was lost.
func Outcome(ctx context.Context, err error, fenced bool) string {
	switch {
	case fenced:
		return AttemptFenced
	case err == nil:
		return AttemptDone
	case ctx.Err() != nil, errors.Is(err, context.Canceled):
		return AttemptCut
	}
	return AttemptFailed
}
