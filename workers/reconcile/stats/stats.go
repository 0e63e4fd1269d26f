// Package stats counts what the reconciler has found and mended, for its metrics.
package stats

import (
	"sync/atomic"
	"time"
)

// Stats counts what this process's reconciler has found and mended since it began. The gauges are
// how it stood at the last look, and 0 in a process that does not reconcile.
type Stats struct {
	// Observed are observations of instances that were stored.
	Observed atomic.Int64
	// ClaimsFreed are operations taken from processes that had died.
	ClaimsFreed atomic.Int64
	// SleepersWoken are operations past their deadline that nothing would have looked at.
	SleepersWoken atomic.Int64
	// TasksEnded are node tasks that ended for want of an agent.
	TasksEnded atomic.Int64
	// TasksOutlived are node tasks of ended operations that their agents were asked to end.
	TasksOutlived atomic.Int64
	// AllocationsFreed and AllocationsFailed are what became of allocations that no one could use.
	AllocationsFreed, AllocationsFailed atomic.Int64
	// Forgotten are deleted rows of secrets, keys and credentials that had ended.
	Forgotten atomic.Int64
	// CanariesHalted are canaries that were clearly worse than what they stood beside.
	CanariesHalted atomic.Int64
	// Sealed are entries of the audit that were added to its hash chain.
	Sealed atomic.Int64
	// SealLag is for how long the oldest entry of the last batch had waited for that, in seconds.
	SealLag atomic.Int64
	// Overdue are operations that have been due for more than a minute though workers live, up to 10,000.
	Overdue atomic.Int64
	// OldestDue is for how long the first of them has been due, in seconds.
	OldestDue atomic.Int64
	// Failing are operations whose step has failed ten times in a row or more, up to 10,000.
	Failing atomic.Int64
	// EndsRefused are open operations whose end is refused. EndedBare are those that ended in the last day with no more
	// than their end. Both are of the 10,000 newest.
	EndsRefused, EndedBare atomic.Int64
	// TransactionsEnded are writing transactions of ours that ran for longer than they may.
	TransactionsEnded atomic.Int64

	holder atomic.Pointer[Holder]
}

// Holder returns whose transaction held back the feeds at the last poll; the zero Holder when none did.
func (s *Stats) Holder() Holder {
	if holder := s.holder.Load(); holder != nil {
		return *holder
	}
	return Holder{}
}

// Held stores whose transaction holds back the feeds, nil for none, and returns the one before.
func (s *Stats) Held(now *Holder) (before Holder) {
	if was := s.holder.Swap(now); was != nil {
		before = *was
	}
	return before
}

// Reading is one number of Stats, as a metric.
type Reading struct {
	// Name is in snake_case, Help one sentence.
	Name, Help string
	// Total says that it only grows; the others go up and down.
	Total bool
	Value func() int64
}

// Readings are all numbers, in a fixed order.
func (s *Stats) Readings() []Reading {
	total := func(name, help string, of *atomic.Int64) Reading { return Reading{name, help, true, of.Load} }
	now := func(name, help string, of *atomic.Int64) Reading { return Reading{name, help, false, of.Load} }
	return []Reading{
		total("observed_total", "Observations of instances that were stored.", &s.Observed),
		total("claims_freed_total", "Operations taken from worker processes that had died.", &s.ClaimsFreed),
		total("sleepers_woken_total", "Sleeping operations past their deadline that were woken.", &s.SleepersWoken),
		total("tasks_ended_total", "Node tasks that timed out because no agent took or finished them.", &s.TasksEnded),
		total("tasks_outlived_total", "Node tasks of ended operations that agents were requested to end.",
			&s.TasksOutlived),
		total("allocations_freed_total", "Allocations that were freed from released instances.", &s.AllocationsFreed),
		total("allocations_failed_total", "Allocations that no node was found for in time.", &s.AllocationsFailed),
		total("forgotten_total", "Expired rows of secrets, keys and credentials that were deleted.", &s.Forgotten),
		total("canaries_halted_total", "Canaries that were halted as clearly worse than the active version.",
			&s.CanariesHalted),
		total("audit_sealed_total", "Entries of the audit that were added to its hash chain.", &s.Sealed),
		now("audit_seal_lag_seconds", "How long the oldest entry of the last sealing had waited.", &s.SealLag),
		now("overdue_operations", "Operations that have been due for over a minute though workers run.", &s.Overdue),
		now("oldest_due_seconds", "How long the first of the overdue operations has been due.", &s.OldestDue),
		now("failing_operations", "Operations whose step has failed ten times in a row or more.", &s.Failing),
		now("refused_ends", "Open operations whose end is refused, by the database or by a fault of the platform.",
			&s.EndsRefused),
		now("bare_ends", "Operations of the last day of which only the end was recorded.", &s.EndedBare),
		total("transactions_ended_total", "Writing transactions that were ended since they ran longer than allowed.",
			&s.TransactionsEnded),
		{"feed_lag_seconds", "How long the oldest running transaction has held back the feeds.", false,
			func() int64 { return int64(s.Holder().Lag.Seconds()) }},
	}
}

// Resign forgets how things were: another process reconciles now.
func (s *Stats) Resign() {
	for _, now := range []*atomic.Int64{&s.SealLag, &s.Overdue, &s.OldestDue, &s.Failing, &s.EndsRefused,
		&s.EndedBare} {
		now.Store(0)
	}
	s.Held(nil)
}

// Holder is whose transaction holds back the commit-ordered feeds: the oldest that writes, in any database of the
// server.
type Holder struct {
	// Kind is "backend", or "prepared" for a transaction that no connection has: PREPARE TRANSACTION.
	Kind string
	// Name is the process id of a backend, and the identifier of a prepared transaction.
	Name string
	// Database, User and Application are those of its connection; Application is empty for a prepared one.
	Database, User, Application string
	// Lag is for how long the feeds have been held.
	Lag time.Duration
}
