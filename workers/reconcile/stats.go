package reconcile

import "sync/atomic"

// Stats counts what this process's reconciler has found and mended since it began; Overdue and
// OldestDue are how it stands at the last look.
type Stats struct {
	// Observed are observations of instances that were stored.
	Observed atomic.Int64
	// ClaimsFreed are operations taken from processes that had died.
	ClaimsFreed atomic.Int64
	// SleepersWoken are operations past their deadline that nothing would have looked at.
	SleepersWoken atomic.Int64
	// TasksEnded are node tasks that ended for want of an agent.
	TasksEnded atomic.Int64
	// TasksOutlived are node tasks that their agents were asked to end, of operations that had ended.
	TasksOutlived atomic.Int64
	// AllocationsFreed and AllocationsFailed are what became of allocations nobody could use.
	AllocationsFreed, AllocationsFailed atomic.Int64
	// Forgotten are rows that were over.
	Forgotten atomic.Int64
	// Overdue are operations that have been due for more than a minute though workers live, up to 10,000.
	Overdue atomic.Int64
	// OldestDue is for how long the first of them has been due, in seconds.
	OldestDue atomic.Int64
}
