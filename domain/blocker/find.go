package blocker

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
)

// The times that findings turn on.
const (
	queuedAfter  = 2 * time.Second  // due for that long without a worker
	takeOver     = 15 * time.Second // after the last heartbeat of a lost worker
	deadlineSoon = time.Minute
	gracePeriod  = 2 * time.Minute
	feedQuiet    = time.Minute
)

// one returns a list of a single finding without a subject.
func one(since time.Time, words ...string) []finding {
	return []finding{{since: since, words: words}}
}

// forced reports whether the operation goes on by force, and so waits for no node that cannot be reached.
func (f *Facts) forced() bool {
	return f.Operation != nil && (f.Operation.Force || f.Operation.ForcedAt != nil)
}

// next returns when a worker reads the operation again; nil while a worker holds it, or it is due.
func (f *Facts) next() *time.Time {
	if f.Operation == nil || f.Operation.Claimed || !f.Operation.Due.After(f.Now) {
		return nil
	}
	at := f.Operation.Due
	return &at
}

// began returns when the step under way began, or the operation was requested.
func (f *Facts) began() time.Time {
	switch {
	case f.Operation == nil && f.Instance != nil:
		return f.Instance.Created
	case f.Operation == nil:
		return f.Now
	case f.Operation.Step != nil:
		return f.Operation.Step.Started
	}
	return f.Operation.Created
}

// waiting returns since when the operation waits for a worker: since it is due, or was requested.
func (f *Facts) waiting() time.Time {
	op := f.Operation
	if op.Due.After(op.Created) && op.Due.Before(f.Now) {
		return op.Due
	}
	return op.Created
}

func noWorker(f *Facts) []finding {
	if f.Workers.Alive {
		return nil
	}
	since := f.waiting()
	if f.Workers.Heard != nil && f.Workers.Heard.After(f.Operation.Created) {
		since = *f.Workers.Heard
	}
	return one(since)
}

func workerLost(f *Facts) []finding {
	if !f.Operation.Claimed || f.Operation.Holder.Alive || !f.Workers.Alive {
		return nil
	}
	since := f.began()
	if f.Operation.Holder.Heard != nil {
		since = *f.Operation.Holder.Heard
	}
	next := since.Add(takeOver)
	return []finding{{since: since, next: &next}}
}

func planUnknown(f *Facts) []finding {
	if !f.Workers.Alive || f.Operation.Claimed || !f.Operation.Unknown {
		return nil
	}
	return one(f.waiting(), "kind", words(f.Operation.Kind))
}

// waits reports whether the operation has been due for a while, and no worker took it though some could.
func (f *Facts) waits() bool {
	op := f.Operation
	return f.Workers.Alive && !op.Claimed && !op.Unknown && f.Now.Sub(op.Due) >= queuedAfter
}

// busy reports whether workers make no further calls to the operation's adapter.
func (f *Facts) busy() bool { return f.Adapter != nil && f.Adapter.Busy }

func queued(f *Facts) []finding {
	if !f.waits() || f.busy() {
		return nil
	}
	return one(f.Operation.Due, "backlog", strconv.Itoa(max(f.Backlog, 1)))
}

func adapterBusy(f *Facts) []finding {
	if !f.waits() || !f.busy() {
		return nil
	}
	return []finding{{subject: f.AdapterName, since: f.Operation.Due, words: []string{"adapter", f.AdapterName}}}
}

func operationAhead(f *Facts) []finding {
	if f.Behind == nil {
		return nil
	}
	return []finding{{subject: string(f.Behind.ID), since: f.Behind.Since, next: f.next(),
		words: []string{"operation", string(f.Behind.ID), "kind", words(f.Behind.Kind), "instance",
			string(f.Behind.Instance)}}}
}

func workRunning(f *Facts) []finding {
	works := f.Operation.Works
	if len(works) == 0 {
		return nil
	}
	since, subject := f.began(), works[0].MemberID
	for _, work := range works {
		if work.Since != nil && (work == works[0] || work.Since.Before(since)) {
			since = *work.Since
		}
	}
	if subject == "" {
		subject = works[0].ID
	}
	name := works[0].ID
	if works[0].Name != "" {
		name += " (" + works[0].Name + ")"
	}
	if works[0].Message != "" {
		name += ": " + works[0].Message
	}
	count := "1 piece of work"
	if len(works) > 1 {
		count = fmt.Sprintf("%d pieces of work", len(works))
	}
	return []finding{{subject: subject, since: since, next: f.next(), words: []string{"count", count, "work", name}}}
}

func cancelUnanswered(f *Facts) []finding {
	if f.Operation.State != lifecycle.OperationCanceling {
		return nil
	}
	since := f.began()
	if f.Operation.CancelAskedAt != nil {
		since = *f.Operation.CancelAskedAt
	}
	return []finding{{subject: f.AdapterName, since: since, next: f.next(), words: []string{"adapter", f.AdapterName}}}
}

func forceGrace(f *Facts) []finding {
	if f.Operation.ForcedAt == nil || !f.onAdapter() {
		return nil
	}
	until := f.Operation.ForcedAt.Add(gracePeriod)
	if f.Now.After(until) {
		return nil
	}
	return []finding{{subject: f.AdapterName, since: *f.Operation.ForcedAt, next: &until,
		words: []string{"adapter", f.AdapterName, "until", clock(until)}}}
}

func deadlinePassed(f *Facts) []finding {
	op := f.Operation
	if f.Now.Before(op.Deadline) || op.ForcedAt != nil || op.State == lifecycle.OperationCompensating {
		return nil
	}
	return one(op.Deadline)
}

func deadlineNear(f *Facts) []finding {
	op := f.Operation
	if left := op.Deadline.Sub(f.Now); left <= 0 || left > deadlineSoon || op.ForcedAt != nil {
		return nil
	}
	at := op.Deadline
	return []finding{{since: op.Deadline.Add(-deadlineSoon), next: &at, words: []string{"deadline", clock(at)}}}
}

func endRefused(f *Facts) []finding {
	refusal := f.Operation.Refusal
	if refusal == nil {
		return nil
	}
	return []finding{{since: refusal.Since, next: f.next(), words: []string{"state", words(refusal.State),
		"times", strconv.Itoa(refusal.Times), "reason", refusal.Why}}}
}

func platformTrouble(f *Facts) []finding {
	step := f.Operation.Step
	if !f.failing() || step.WaitOwner != OwnerPlatform || step.WaitCode == fault.DialRefused {
		return nil
	}
	return []finding{{subject: step.Name, since: step.Started, next: f.next(),
		words: []string{"step", step.Name, "failures", strconv.Itoa(f.Operation.Failures), "reason", step.Message}}}
}

func compensating(f *Facts) []finding {
	if f.Operation.State != lifecycle.OperationCompensating {
		return nil
	}
	text := f.Operation.Message
	if f.Operation.Step != nil && f.Operation.Step.Message != "" {
		text = f.Operation.Step.Message
	}
	return []finding{{since: f.began(), next: f.next(), words: []string{"step", text}}}
}

// stepRunning is the finding when no other rule has one: it repeats the step's message.
func stepRunning(f *Facts) []finding {
	op := f.Operation
	if op.State == lifecycle.OperationCompensating || op.State == lifecycle.OperationCanceling || f.onAdapter() {
		return nil
	}
	found := finding{since: f.began(), next: f.next(), owner: OwnerPlatform,
		words: []string{"step", "waits for its turn"}}
	if op.Step != nil {
		found.subject = op.Step.Name
		found.words = []string{"step", op.Step.Message}
		if owners := []string{OwnerAdapter, OwnerUser, OwnerNode}; slices.Contains(owners, op.Step.WaitOwner) {
			found.owner = op.Step.WaitOwner
		}
	}
	return []finding{found}
}

// words returns a name in capitals as a person reads it.
func words[S ~string](name S) string {
	return strings.ToLower(strings.ReplaceAll(string(name), "_", " "))
}

func clock(at time.Time) string { return at.UTC().Format(time.RFC3339) }
