// Package metrics counts what the platform does, as it does it, for Prometheus. A Set is one process's; the code that
// counts receives it, as it does the source of traces, and a nil Set counts nothing.
//
// No label is the id of an object, nor a text that a caller chose, but for the registered names of the few adapters
// that are away: labels are names of the schema, of kinds, steps and calls, and codes of the catalogue, and what is
// unknown among them is counted as "other". So a process has a bounded number of series, whatever runs on it; MaxSeries
// is the bound of a Set.
package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
)

// prefix begins the name of every metric of the platform.
const prefix = "app_platform_"

// Set is what one process counts. Its methods may be called on nil and from any goroutine.
type Set struct {
	requests requests
	engine   engine
	outward  outward
	nodes    nodes
	books    books
	ends     *ends

	families []family
}

// family is a group of series of one name: what it can grow to is known beforehand.
type family struct {
	prometheus.Collector
	most int
}

// New returns a process's set. verbs are the schema's root fields, with the kind of operation that each belongs to.
func New(verbs map[string]string) *Set {
	s := &Set{ends: newEnds()}
	s.requests.begin(s, verbs)
	s.engine.begin(s)
	s.outward.begin(s)
	s.nodes.begin(s)
	s.books.begin(s)
	s.keep(s.ends, maxEnds)
	return s
}

// MaxSeries is the most series that the set has, whatever is counted.
func (s *Set) MaxSeries() (most int) {
	for _, one := range s.families {
		most += one.most
	}
	return most
}

// Describe implements prometheus.Collector.
func (s *Set) Describe(into chan<- *prometheus.Desc) {
	for _, one := range s.families {
		one.Describe(into)
	}
}

// Collect implements prometheus.Collector.
func (s *Set) Collect(into chan<- prometheus.Metric) {
	for _, one := range s.families {
		one.Collect(into)
	}
}

// keep adds a family with the most series that it has.
func (s *Set) keep(one prometheus.Collector, most int) {
	s.families = append(s.families, family{one, most})
}

// counter adds a family of counters; most bounds what its labels are together.
func (s *Set) counter(most int, name, help string, labels ...string) *prometheus.CounterVec {
	vec := prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + name, Help: help}, labels)
	s.keep(vec, most)
	return vec
}

// gauge adds a family of gauges.
func (s *Set) gauge(most int, name, help string, labels ...string) *prometheus.GaugeVec {
	vec := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + name, Help: help}, labels)
	s.keep(vec, most)
	return vec
}

// histogram adds a family of durations in seconds. Each has a series for every bucket, one beyond them, sum and count.
func (s *Set) histogram(most int, name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	vec := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: prefix + name, Help: help,
		Buckets: buckets}, labels)
	s.keep(vec, most*(len(buckets)+3))
	return vec
}

// observe notes a duration, with the trace that it belongs to as its exemplar, where that is sent anywhere.
func observe(ctx context.Context, by prometheus.Observer, took time.Duration) {
	at := trace.SpanContextFromContext(ctx)
	if with, ok := by.(prometheus.ExemplarObserver); ok && at.IsSampled() {
		with.ObserveWithExemplar(took.Seconds(), prometheus.Labels{"trace_id": at.TraceID().String()})
		return
	}
	by.Observe(took.Seconds())
}
