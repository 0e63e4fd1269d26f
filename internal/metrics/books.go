package metrics

import "github.com/prometheus/client_golang/prometheus"

// books counts what a process with the billing role does.
type books struct {
	runs, failed         prometheus.Counter
	unbalanced, verified prometheus.Gauge
}

func (b *books) begin(s *Set) {
	b.runs = s.counter(1, "billing_runs_total", "Runs that booked usage.").WithLabelValues()
	b.failed = s.counter(1, "billing_looks_failed_total",
		"Runs of the billing role over all books that met an error.").WithLabelValues()
	b.unbalanced = s.gauge(1, "ledger_unbalanced_transactions",
		"Transactions of the ledger whose entries do not sum to zero, as the last check of all of it and the present "+
			"one found; must be 0.").WithLabelValues()
	b.verified = s.gauge(1, "ledger_verified_transactions",
		"Transactions of the ledger that the present check of all of it has summed up.").WithLabelValues()
}

// Booked counts a look of the billing role at all books, with the runs that it took.
func (s *Set) Booked(runs int, err error) {
	if s == nil {
		return
	}
	s.books.runs.Add(float64(runs))
	if err != nil {
		s.books.failed.Inc()
	}
}

// Balanced notes how a look through the ledger goes.
func (s *Set) Balanced(verified, unbalanced int64) {
	if s == nil {
		return
	}
	s.books.verified.Set(float64(verified))
	s.books.unbalanced.Set(float64(unbalanced))
}
