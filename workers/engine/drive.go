package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/event"
	"github.com/gpuaas/app-platform/service/operation"
)

// Bounds of running and retrying.
const (
	stepTimeout  = time.Minute // one run of a step
	minWait      = 50 * time.Millisecond
	backoffFirst = 500 * time.Millisecond
	backoffMax   = 30 * time.Second
	letGo        = 5 * time.Second // for the last write of a step that failed or was cut
)

// drive carries a claimed operation on until it waits, ends or is lost.
func (e *Engine) drive(ctx context.Context, held *operation.Held) {
	c := &Context{Op: held, engine: e, kind: e.kinds[held.Kind], failures: held.Failures,
		Log: e.config.Log.With("operation", held.ID, "kind", held.Kind, "epoch", held.ClaimEpoch, "correlation_id", held.CorrelationID)}
	err := c.guarded(ctx)
	if c.word != nil {
		c.word.Close()
	}
	switch {
	case err == nil, ctx.Err() != nil: // what a stopping worker holds is handed over at once
		return
	case errors.Is(err, operation.ErrFenced):
		c.Log.Info("the operation was ended or taken over; dropped")
		return
	}
	c.Log.Error("the operation could not be carried on; it is tried again", "error", err)
	last, cancel := context.WithTimeout(ctx, letGo)
	defer cancel()
	c.failures++
	if err := c.release(last, c.backoff()); err != nil && !errors.Is(err, operation.ErrFenced) {
		c.Log.Warn("the claim could not be given back; the sweep will", "error", err)
	}
}

// guarded carries on, and makes a step's panic an error, so that the claim is given back.
func (c *Context) guarded(ctx context.Context) (err error) {
	defer func() {
		if thrown := recover(); thrown != nil {
			c.Log.Error("a step panicked", "panic", thrown, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", thrown)
		}
	}()
	return c.carryOn(ctx)
}

func (c *Context) carryOn(ctx context.Context) error {
	stranger := c.kind == nil
	if stranger {
		c.kind = &Kind{Kind: c.Op.Kind}
	}
	if err := c.load(ctx); err != nil {
		return err
	}
	if stranger || !c.known() {
		return c.failUnknown(ctx)
	}
	for c.at = 0; c.at < len(c.kind.Steps); c.at++ {
		if c.rows[c.at].State == lifecycle.StepSucceeded || c.rows[c.at].State == lifecycle.StepSkipped {
			continue
		}
		if !c.Now().Before(c.Op.Deadline) {
			return c.expire(ctx)
		}
		c.begin()
		over, err := c.runStep(ctx)
		if over || err != nil {
			return err
		}
	}
	return c.complete(ctx)
}

// begin notes that the step is under way.
func (c *Context) begin() {
	row, step := c.rows[c.at], c.kind.Steps[c.at]
	if row.State == lifecycle.StepRunning {
		return
	}
	now := c.Now()
	row.State, row.Attempt, row.StartedAt, row.Message, row.dirty = lifecycle.StepRunning, row.Attempt+1, &now, step.Title, true
	c.failures = 0
	c.progress.Phase, c.progress.Message = step.Name, step.Title
}

// runStep runs the current step once; over when the claim was given back or the operation ended.
func (c *Context) runStep(ctx context.Context) (over bool, err error) {
	bounded, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	result, err := c.kind.Steps[c.at].Run(bounded, c)
	switch {
	case errors.Is(err, operation.ErrFenced) || (err != nil && ctx.Err() != nil):
		return true, err
	case err != nil:
		return true, c.retry(ctx, err)
	case result.failure != nil:
		return true, c.fail(ctx, *result.failure)
	case result.waiting:
		return true, c.wait(ctx, result)
	}
	return false, c.done(result.evidence)
}

func (c *Context) done(evidence any) error {
	row := c.rows[c.at]
	row.Evidence = nil
	if evidence != nil {
		encoded, err := json.Marshal(evidence)
		if err != nil {
			return fmt.Errorf("encode the evidence of %s: %w", row.Name, err)
		}
		row.Evidence = operation.Storable(encoded)
	}
	now := c.Now()
	row.State, row.EndedAt, row.dirty = lifecycle.StepSucceeded, &now, true
	c.progress.Percent = c.kind.Steps[c.at].Percent
	c.failures = 0
	return nil
}

// wait lets go until the result's moment, or until the operation is woken.
func (c *Context) wait(ctx context.Context, result Result) error {
	if result.message != "" {
		c.Say(result.message)
	}
	if err := c.blame(result.blame); err != nil {
		return err
	}
	c.failures = 0
	return c.release(ctx, result.after)
}

// retry lets go for a growing while after an error.
func (c *Context) retry(ctx context.Context, cause error) error {
	c.failures++
	after := c.backoff()
	message, blame := "the platform met an internal error", Blame{Owner: operation.OwnerPlatform}
	var trouble *Trouble
	if errors.As(cause, &trouble) {
		message, blame = trouble.Message, trouble.Blame
	}
	c.Log.Warn("step failed; it is tried again", "step", c.Step(), "failures", c.failures, "after", after, "error", cause)
	row := c.rows[c.at]
	row.Attempt, row.dirty = row.Attempt+1, true
	c.Say(fmt.Sprintf("%s; next try in %s", message, after.Round(100*time.Millisecond)))
	if err := c.blame(blame); err != nil {
		return err
	}
	return c.release(ctx, after)
}

// blame notes what the step waits for, for the case that the deadline comes first.
func (c *Context) blame(blame Blame) error {
	if blame.Code == "" {
		blame.Code = fault.DeadlineExceeded
	}
	if blame.Owner == "" {
		blame.Owner = c.kind.Steps[c.at].Owner
	}
	return c.rows[c.at].note(func(n *notes) { n.Waits = &waits{Code: blame.Code, Owner: blame.Owner} })
}

// backoff doubles with each failure in a row; the jitter keeps workers from knocking together.
func (c *Context) backoff() time.Duration {
	grown := min(backoffFirst<<min(c.failures-1, 10), backoffMax)
	return grown/2 + rand.N(grown/2+1)
}

// release gives the claim back. News that came while it was held makes the operation due at once.
func (c *Context) release(ctx context.Context, after time.Duration) error {
	until := c.Now().Add(max(after, minWait))
	if until.After(c.Op.Deadline) {
		until = c.Op.Deadline
		if soonest := c.Now().Add(minWait); until.Before(soonest) {
			until = soonest
		}
	}
	var woken bool
	args := []any{c.Op.ID, c.Op.ClaimEpoch, c.Op.Worker, until, c.failures}
	var err error
	if c.unsaved() {
		err = c.Write(ctx, func(_ context.Context, _ *tx.Tx, locked *Locked) error {
			locked.Writes.Queue(operation.ReleaseSQL, args...).QueryRow(func(row pgx.Row) error { return row.Scan(&woken) })
			return nil
		})
	} else {
		err = c.DB().Worker().QueryRow(ctx, operation.ReleaseSQL, args...).Scan(&woken)
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return operation.ErrFenced
	}
	if err != nil {
		return fmt.Errorf("release %s: %w", c.Op.ID, err)
	}
	c.engine.due(until, woken)
	return nil
}

// unsaved says whether there is more to store than the release itself.
func (c *Context) unsaved() bool {
	if len(c.rows) == 0 {
		return false
	}
	for _, row := range c.rows {
		if row.dirty || row.stored == "" {
			return true
		}
	}
	op := c.Op.Operation
	return c.intended(op) != (operation.Progress{Phase: op.Phase, Message: op.Message, Percent: op.Percent})
}

// expire fails an operation whose deadline has passed, with the code and owner of what it waited for.
func (c *Context) expire(ctx context.Context) error {
	row := c.rows[c.at]
	failure := operation.Failure{Code: string(fault.DeadlineExceeded), Owner: c.kind.Steps[c.at].Owner, Retryable: true,
		Message: "the deadline passed before the work began"}
	if row.State == lifecycle.StepRunning {
		failure.Message = "the deadline passed: " + row.Message
	}
	if waited := row.notes().Waits; waited != nil {
		failure.Code, failure.Owner = string(waited.Code), waited.Owner
	}
	return c.fail(ctx, failure)
}

// fail ends the operation and what it stands for in one transaction.
func (c *Context) fail(ctx context.Context, failure operation.Failure) error {
	failure = failure.Clipped()
	now := c.Now()
	for i, row := range c.rows {
		switch {
		case i == c.at && row.State == lifecycle.StepRunning:
			row.State, row.Message = lifecycle.StepFailed, failure.Message
		case row.State == lifecycle.StepPending:
			row.State = lifecycle.StepSkipped
		default:
			continue
		}
		row.EndedAt, row.dirty = &now, true
	}
	err := c.Write(ctx, func(ctx context.Context, t *tx.Tx, locked *Locked) error {
		if c.kind.OnFail != nil {
			if err := c.kind.OnFail(ctx, t, c, locked, failure); err != nil {
				return err
			}
		}
		for _, told := range c.Op.Kind.Effects().Failed {
			locked.Emit(event.Draft{Type: told, Message: failure.Message, Payload: failure.Payload()})
		}
		locked.Emit(event.Draft{Type: lifecycle.EventOperationFailed, Message: failure.Message, Payload: failure.Payload()})
		locked.ended = true
		return operation.Fail(ctx, t, locked.Op, failure)
	})
	if err != nil {
		return err
	}
	c.Log.Warn("operation failed", "code", failure.Code, "owner", failure.Owner, "message", failure.Message)
	if c.kind.Abandon != nil {
		bounded, cancel := context.WithTimeout(ctx, letGo)
		defer cancel()
		c.kind.Abandon(bounded, c)
	}
	return nil
}

// failUnknown ends an operation whose kind or steps this build does not know, at its first step that
// has not ended.
func (c *Context) failUnknown(ctx context.Context) error {
	for c.at = 0; c.at < len(c.rows)-1 && c.rows[c.at].State == lifecycle.StepSucceeded; {
		c.at++
	}
	return c.fail(ctx, operation.Failure{Code: string(fault.Internal), Owner: operation.OwnerPlatform,
		Message: fmt.Sprintf("this build cannot carry out the steps of %s", c.Op.Kind)})
}

// complete ends the operation with success.
func (c *Context) complete(ctx context.Context) error {
	row, now := c.rows[c.at], c.Now()
	row.State, row.Attempt, row.StartedAt, row.EndedAt, row.Message, row.dirty = lifecycle.StepSucceeded, row.Attempt+1, &now, &now, "done", true
	c.progress = operation.Progress{}
	err := c.Write(ctx, func(ctx context.Context, t *tx.Tx, locked *Locked) error {
		evidence, message, err := c.kind.Complete(ctx, t, c, locked)
		if err != nil {
			return err
		}
		for _, told := range c.Op.Kind.Effects().Succeeded {
			locked.Emit(event.Draft{Type: told, Message: message})
		}
		locked.Emit(event.Draft{Type: lifecycle.EventOperationSucceeded, Message: message})
		locked.ended = true
		return operation.QueueFinish(locked.Writes, t, locked.Op, evidence, message)
	})
	if err != nil {
		row.State, row.EndedAt = lifecycle.StepRunning, nil
		return err
	}
	c.Log.Info("operation succeeded")
	return nil
}
