package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Bounds of the calls of the adapter contract, of which there are eight, and of what they meet, which are nine things.
const (
	maxCalls    = 12
	maxOutcomes = 12
)

// outward counts what the platform calls and what it sends.
type outward struct {
	calls     *prometheus.HistogramVec
	answers   *prometheus.CounterVec
	names     label
	outcomes  label
	webhooks  prometheus.Observer
	delivered prometheus.Observer
}

func (o *outward) begin(s *Set) {
	o.names.most, o.outcomes.most = maxCalls, maxOutcomes
	o.calls = s.histogram(maxCalls, "adapter_call_seconds", "Time that a call to an adapter takes, by call.",
		[]float64{.01, .05, .25, 1, 5, 15}, "call")
	o.answers = s.counter(maxCalls*maxOutcomes, "adapter_calls_total",
		"Calls to adapters, by call and outcome: ok, or the kind of failure.", "call", "outcome")
	o.webhooks = s.histogram(1, "webhook_try_seconds", "Time that one try of a webhook delivery takes.",
		[]float64{.05, .25, 1, 5}).WithLabelValues()
	o.delivered = s.histogram(1, "feed_delivery_seconds",
		"Time from the hint that there is news until it was handed to the subscribers of a live feed.",
		[]float64{.005, .02, .1, .5, 2}).WithLabelValues()
}

// Call counts a call to an adapter; failed is the kind of failure, "" for none.
func (s *Set) Call(ctx context.Context, call, failed string, took time.Duration) {
	if s == nil {
		return
	}
	if failed == "" {
		failed = "ok"
	}
	call = s.outward.names.of(call)
	observe(ctx, s.outward.calls.WithLabelValues(call), took)
	s.outward.answers.WithLabelValues(call, s.outward.outcomes.of(failed)).Inc()
}

// Webhook notes a try of a webhook delivery.
func (s *Set) Webhook(ctx context.Context, took time.Duration) {
	if s != nil {
		observe(ctx, s.outward.webhooks, took)
	}
}

// Delivered notes how long after its hint news was handed to the subscribers of a live feed.
func (s *Set) Delivered(took time.Duration) {
	if s != nil {
		s.outward.delivered.Observe(took.Seconds())
	}
}
