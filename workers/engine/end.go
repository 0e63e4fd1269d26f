package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/panics"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/service/ledger/queue"
	"github.com/gpuaas/app-platform/service/ledger/roles"
	"github.com/gpuaas/app-platform/workers/steprow"
)

// expire handles a step whose time has passed: force skips it, or begins, or the
// operation fails with the code and owner of what it waited for.
func (c *Context) expire(ctx context.Context) (over bool, err error) {
	row := c.rows[c.at]
	if c.gives() {
		c.giveUp(row.Message)
		return false, nil
	}
	if c.mayForce() {
		return false, c.force(ctx)
	}
	failure := operation.Failure{Code: string(fault.DeadlineExceeded), Owner: operation.OwnerPlatform, Retryable: true,
		Message: "the deadline passed before a worker began"}
	if row.State == lifecycle.StepRunning {
		failure.Message, failure.Owner = "the deadline passed: "+row.Message, c.step().Owner
	}
	if waited := row.Notes().Waits; waited != nil {
		failure.Code, failure.Owner = string(waited.Code), waited.Owner
	}
	if work := c.workAwaited(); work != "" && failure.Owner == operation.OwnerAdapter &&
		failure.Code == string(fault.DeadlineExceeded) {
		failure.Message, failure.Owner = "the deadline passed while it waited for "+work, operation.OwnerUser
	}
	return true, c.fail(ctx, failure)
}

// workAwaited names people's work that the adapter waits for, by its newest word; empty for none.
func (c *Context) workAwaited() string {
	const most = 3
	status := operation.StoredStatus(c.Op.Operation)
	if status == nil || status.State.Terminal() {
		return ""
	}
	var names []string
	for _, work := range status.WaitsFor[:min(len(status.WaitsFor), most)] {
		names = append(names, strings.TrimSpace(work.Kind+" "+work.ID))
	}
	text := strings.Join(names, ", ")
	if more := len(status.WaitsFor) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// fail takes back what was half done, if the kind does that, and ends the operation.
func (c *Context) fail(ctx context.Context, failure operation.Failure) error {
	failure = failure.Clipped()
	if len(c.kind.Undo) > 0 && (c.kind.Undoes == nil || c.kind.Undoes(c, failure)) {
		return c.turnBack(ctx, failure)
	}
	before := c.snapshotRows()
	c.stopSteps(failure)
	return c.close(ctx, failure, before)
}

// stopSteps notes that the running step did not succeed, and that the others are not begun any more.
func (c *Context) stopSteps(failure operation.Failure) {
	now := c.Now()
	for i, row := range c.rows {
		switch {
		case i == c.at && row.State == lifecycle.StepRunning && Canceled(failure):
			row.State, row.Message = lifecycle.StepSkipped, failure.Message
		case i == c.at && row.State == lifecycle.StepRunning:
			row.State, row.Message = lifecycle.StepFailed, failure.Message
		case row.State == lifecycle.StepPending ||
			row.State == lifecycle.StepRunning: // the last one runs when it sent back to another
			row.State = lifecycle.StepSkipped
		default:
			continue
		}
		row.EndedAt, row.Dirty = &now, true
	}
}

// close ends the operation without success, and writes what its kind does then, in one transaction. When that fails,
// before restores the steps, so that the operation stays as open as the database has it.
func (c *Context) close(ctx context.Context, failure operation.Failure, before func()) error {
	err := c.Write(ctx, func(ctx context.Context, t *tx.Tx, locked *Locked) error {
		if c.kind.OnFail != nil {
			err := panics.Caught(c.Log, "what a kind writes at its end", func() error {
				return c.kind.OnFail(ctx, t, c, locked, failure)
			})
			if err != nil {
				return err
			}
		}
		c.undone(locked.Left)
		ending := lifecycle.EventOperationFailed
		if Canceled(failure) {
			ending = lifecycle.EventOperationCanceled
		}
		if !Canceled(failure) || c.kind.CancelFails {
			for _, told := range c.Op.Kind.Effects().Failed {
				locked.tell(told, failure.Message, failure.Payload())
			}
		}
		locked.Emit(event.Draft{Type: ending, Message: failure.Message, Payload: failure.Payload()})
		locked.ended = true
		if endsAs(failure) == lifecycle.OperationCanceled {
			return operation.Canceled(ctx, t, locked.Op, failure)
		}
		return operation.Fail(ctx, t, locked.Op, failure)
	})
	if err != nil {
		before()
		return c.refused(ctx, endsAs(failure), failure, c.reopened(ctx, err))
	}
	c.engine.config.Metrics.Ended(string(c.Op.Kind), string(endsAs(failure)))
	c.Log.Warn("operation did not succeed", "code", failure.Code, "owner", failure.Owner, "message", failure.Message)
	c.abandon(ctx, failure)
	return nil
}

// endsAs is the state in which a failure ends an operation.
func endsAs(failure operation.Failure) lifecycle.OperationState {
	if Canceled(failure) {
		return lifecycle.OperationCanceled
	}
	return lifecycle.OperationFailed
}

// abandon calls the kind's Abandon, unless the operation was canceled: the adapter has then been asked to stop.
func (c *Context) abandon(ctx context.Context, failure operation.Failure) {
	if c.kind.Abandon == nil || Canceled(failure) {
		return
	}
	bounded, cancel := context.WithTimeout(ctx, letGo)
	defer cancel()
	c.kind.Abandon(bounded, c)
}

// snapshotRows returns what restores the steps to what they are now. A transaction that failed has stored nothing of
// what it was to end: the claim's release, which stores the steps too, must not store it either.
func (c *Context) snapshotRows() (restore func()) {
	at, progress, verdict := c.at, c.progress, c.verdict
	rows := steprow.Snapshot(c.rows)
	return func() {
		c.at, c.progress, c.verdict = at, progress, verdict
		c.rows = rows()
	}
}

// reopened runs a step again whose evidence did not hold any more when the operation was about to end.
func (c *Context) reopened(ctx context.Context, cause error) error {
	var again *RerunStep
	if !errors.As(cause, &again) {
		return cause
	}
	for i, row := range c.rows {
		if row.Name != again.Step {
			continue
		}
		c.at = i
		row.State, row.EndedAt, row.Evidence, row.Dirty = lifecycle.StepRunning, nil, nil, true
		if err := c.SetState(again.State); err != nil {
			return err
		}
		c.Say(again.Message)
		return c.release(ctx, 0)
	}
	return cause
}

// finish ends the operation with success. A stop that was requested gets its answer first.
func (c *Context) finish(ctx context.Context) error {
	if c.Op.State == lifecycle.OperationCanceling {
		if over, err := c.cancel(ctx); over || err != nil {
			return err
		}
	}
	err := c.complete(ctx)
	if errors.Is(err, errAskedToStop) { // since the claim
		return c.finish(ctx)
	}
	return err
}

// errAskedToStop reports that a stop was requested while the operation's end was being written.
var errAskedToStop = errors.New("a stop of the operation was requested")

// complete ends the operation with success. What can never be recorded as one fails at the deadline.
func (c *Context) complete(ctx context.Context) error {
	before := c.snapshotRows()
	err := c.succeed(ctx)
	if err == nil {
		c.engine.config.Metrics.Ended(string(c.Op.Kind), string(lifecycle.OperationSucceeded))
		c.Log.Info("operation succeeded")
		return nil
	}
	before()
	if errors.Is(err, errAskedToStop) {
		return err
	}
	c.begin()
	if refused, ok := fault.As(err); ok && refused.Code != fault.Unavailable { // what was proved does not hold any more
		return c.fail(ctx, operation.Failure{Code: string(refused.Code), Message: refused.Message,
			Owner: operation.OwnerPlatform, Retryable: true})
	}
	if !errors.Is(err, queue.ErrFenced) && ctx.Err() == nil && !c.Now().Before(c.due()) {
		c.Log.Error("the end could not be recorded by the deadline", "error", err)
		return c.fail(ctx, operation.Failure{Code: string(fault.Internal), Owner: operation.OwnerPlatform,
			Retryable: true, Message: "the deadline passed while the platform could not record the " +
				"operation's success"})
	}
	return c.refused(ctx, lifecycle.OperationSucceeded, operation.Failure{}, c.reopened(ctx, err))
}

// succeed writes the success, in one transaction.
func (c *Context) succeed(ctx context.Context) error {
	row, now := c.rows[c.at], c.Now()
	row.State, row.Attempt, row.StartedAt, row.EndedAt, row.Message, row.Dirty = lifecycle.StepSucceeded, row.Attempt+1,
		&now, &now, "done", true
	c.progress = operation.Progress{}
	var members *roles.Pending
	how, reads := c.WriteAfter, func(*pgx.Batch) {}
	if c.kind.Queues {
		how, reads = c.WriteTogether, func(batch *pgx.Batch) { members = roles.QueueRecount(batch, *c.Op.InstanceID) }
	}
	return how(ctx, reads, func(ctx context.Context, t *tx.Tx, locked *Locked) error {
		if locked.Op.State == lifecycle.OperationCanceling && !c.asked {
			return errAskedToStop
		}
		locked.Members = members
		evidence, message, err := c.kind.Complete(ctx, t, c, locked)
		if err != nil {
			return err
		}
		for _, told := range c.Op.Kind.Effects().Succeeded {
			locked.tell(told, message, nil)
		}
		locked.Emit(event.Draft{Type: lifecycle.EventOperationSucceeded, Message: message,
			Payload: map[string]any{"outcome": locked.outcome()}})
		locked.ended = true
		return operation.QueueFinish(locked.Writes, t, locked.Op, locked.outcome(), evidence, message)
	})
}

func (l *Locked) outcome() lifecycle.Outcome {
	if l.Outcome == "" {
		return lifecycle.OutcomeNormal
	}
	return l.Outcome
}

// tell emits an event of the kind for each member that it is about, or one without a member; none for an empty About.
func (l *Locked) tell(told lifecycle.EventType, message string, payload map[string]any) {
	about, said := l.About[told]
	if !said && l.Op.Kind.Effects().Scope == lifecycle.ScopeMember {
		about = l.Op.Targets
	}
	if len(about) == 0 && !said {
		about = []ids.ID{""}
	}
	for _, member := range about {
		l.Emit(event.Draft{Type: told, MemberID: member, Message: message, Payload: payload})
	}
}
