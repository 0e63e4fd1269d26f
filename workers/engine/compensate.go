package engine

import (
	"context"
	"time"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// undoing reports whether the current step is one that undoes others.
func (c *Context) undoing() bool { return c.at > len(c.kind.Steps) }

// UndoneBy returns when undoing must have ended; what is left then becomes orphans.
func (c *Context) UndoneBy() time.Time {
	first := c.rows[min(len(c.kind.Steps)+1, len(c.rows)-1)]
	if first.StartedAt == nil {
		return c.Now().Add(c.engine.config.Undo)
	}
	return first.StartedAt.Add(c.engine.config.Undo)
}

// turnBack begins to take back what was half done: what failed stays FAILED, what had been done is
// UNDOING, and the steps that undo it are laid out, all in one transaction with the failure itself.
func (c *Context) turnBack(ctx context.Context, failure operation.Failure) error {
	before := c.snapshotRows()
	c.stopSteps(failure)
	for _, row := range c.rows {
		if row.State == lifecycle.StepSucceeded {
			row.State, row.Dirty = lifecycle.StepUndoing, true
		}
	}
	c.layOut(c.names())
	err := c.Write(ctx, func(ctx context.Context, t *tx.Tx, locked *Locked) error {
		locked.Emit(event.Draft{Type: lifecycle.EventOperationCompensating,
			Message: "undoing what was begun: " + failure.Message, Payload: failure.Payload()})
		return operation.Compensate(ctx, t, locked.Op, failure)
	})
	if err != nil {
		before()
		return c.refused(ctx, lifecycle.OperationCompensating, failure, err)
	}
	c.Log.Warn("operation is being undone", "code", failure.Code, "message", failure.Message)
	c.failures, c.asked, c.Cached = 0, false, nil
	return c.compensate(ctx)
}

// compensate runs the steps that undo. One that fails, or does not come to an end in time, does not
// keep the operation from ending.
func (c *Context) compensate(ctx context.Context) error {
	for c.at = len(c.kind.Steps) + 1; c.at < len(c.rows); c.at++ {
		row := c.rows[c.at]
		if row.Over() || row.State == lifecycle.StepFailed {
			continue
		}
		if !c.Now().Before(c.due()) {
			c.leave("not undone in time: " + row.Message)
			continue
		}
		c.begin()
		over, err := c.runStep(ctx)
		if over || err != nil {
			return err
		}
	}
	c.at = len(c.rows) - 1
	c.progress = operation.Progress{}
	op := c.Op
	failure := operation.Failure{Code: op.ErrorCode, Message: op.ErrorMessage, Owner: op.ErrorOwner,
		Retryable: op.ErrorRetryable}
	return c.close(ctx, failure, c.snapshotRows())
}

// leave gives a step up that undoes.
func (c *Context) leave(why string) {
	row, now := c.rows[c.at], c.Now()
	if row.State == lifecycle.StepPending {
		row.StartedAt = &now
	}
	row.State, row.Message, row.EndedAt, row.Dirty = lifecycle.StepFailed, why, &now, true
}

// undone notes on the steps that were being undone what became of that.
func (c *Context) undone(left bool) {
	now := c.Now()
	for _, row := range c.rows {
		if row.State != lifecycle.StepUndoing {
			continue
		}
		row.State, row.EndedAt, row.Dirty = lifecycle.StepUndone, &now, true
		if left {
			row.State = lifecycle.StepFailed
		}
	}
}
