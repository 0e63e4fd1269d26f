package webhook

import "sync/atomic"

// Stats counts what this process has sent since it began.
type Stats struct {
	// Delivered are deliveries that were taken, Failed tries that were not, Dead deliveries that were given up.
	Delivered, Failed, Dead atomic.Int64
	// Lag is for how long the delivery that has been due longest waits, in seconds, at the last poll of the process
	// that dispatches; 0 in any other. Deliveries to receivers that fail wait too.
	Lag atomic.Int64
}

// Reading is one number of Stats, as a metric.
type Reading struct {
	// Name is in snake_case, Help one sentence.
	Name, Help string
	// Total says that it only grows.
	Total bool
	Value func() int64
}

// Readings are all numbers, in a fixed order.
func (s *Stats) Readings() []Reading {
	return []Reading{
		{"delivered_total", "Webhook deliveries that were accepted.", true, s.Delivered.Load},
		{"failed_total", "Tries of webhook deliveries that failed.", true, s.Failed.Load},
		{"dead_total", "Webhook deliveries that were given up.", true, s.Dead.Load},
		{"lag_seconds", "How long the webhook delivery that is due longest has waited.", false, s.Lag.Load},
	}
}
