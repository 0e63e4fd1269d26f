package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/panics"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/service/ledger/queue"
	"github.com/gpuaas/app-platform/workers/steprow"
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
func (e *Engine) drive(ctx context.Context, held *queue.Held) {
	ctx, ended := e.attempt(ctx, held)
	c := &Context{Op: held, engine: e, failures: held.Failures, Log: e.logOf(ctx, held)}
	err := c.guarded(ctx)
	ended(err)
	if c.word != nil {
		c.word.Close()
	}
	switch {
	case err == nil, ctx.Err() != nil: // what a stopping worker holds is handed over at once
		return
	case errors.Is(err, queue.ErrFenced):
		c.Log.Info("the operation has ended or another worker took it over; dropped")
		return
	}
	if !errors.Is(err, panics.ErrPanicked) {
		c.Log.Error("the operation could not be continued; it is tried again", "error", err)
	}
	last, cancel := context.WithTimeout(ctx, letGo)
	defer cancel()
	c.failures++
	if len(c.rows) > 0 {
		c.Say("the platform met an internal error; it is tried again")
	}
	err = c.release(last, c.backoff())
	if err != nil && !errors.Is(err, queue.ErrFenced) {
		c.Log.Warn("the steps could not be stored with the release", "error", err)
		err = c.releaseAlone(last, c.backoff())
	}
	if err != nil && !errors.Is(err, queue.ErrFenced) {
		c.Log.Warn("the claim could not be released; the sweep will release it", "error", err)
	}
}

// guarded carries on, and makes a step's panic an error, so that the claim is given back.
func (c *Context) guarded(ctx context.Context) error {
	return panics.Caught(c.Log, "a step", func() error { return c.carryOn(ctx) })
}

func (c *Context) carryOn(ctx context.Context) error {
	if err := c.load(ctx); err != nil {
		return err
	}
	if !c.planned() || len(c.rows) > 0 && !c.known() {
		return c.strand(ctx)
	}
	if len(c.rows) == 0 {
		c.layOut(c.names()[:len(c.kind.Steps)+1])
	}
	if c.Op.State == lifecycle.OperationCompensating {
		return c.compensate(ctx)
	}
	for c.at = 0; c.at < len(c.kind.Steps); c.at++ {
		over, err := c.pass(ctx)
		if over || err != nil {
			return err
		}
	}
	return c.finish(ctx)
}

// pass brings the current step to its end, unless it is there; over when the claim was given back or
// the operation ended.
func (c *Context) pass(ctx context.Context) (over bool, err error) {
	if c.rows[c.at].Over() {
		return false, nil
	}
	if c.Op.State == lifecycle.OperationCanceling {
		if over, err := c.cancel(ctx); over || err != nil {
			return over, err
		}
	}
	if !c.Now().Before(c.due()) {
		if over, err := c.expire(ctx); over || err != nil || c.rows[c.at].Over() {
			return over, err
		}
	}
	c.begin()
	return c.runStep(ctx)
}

// step is the step that runs.
func (c *Context) step() Step {
	switch {
	case c.at < len(c.kind.Steps):
		return c.kind.Steps[c.at]
	case c.at > len(c.kind.Steps) && c.at <= len(c.kind.Steps)+len(c.kind.Undo):
		return c.kind.Undo[c.at-len(c.kind.Steps)-1]
	}
	return Step{Name: finishStep, Owner: operation.OwnerPlatform}
}

// begin notes that the step is under way.
func (c *Context) begin() {
	row, step := c.rows[c.at], c.step()
	if row.State == lifecycle.StepRunning {
		return
	}
	now := c.Now()
	row.State, row.Attempt, row.StartedAt, row.Message, row.Dirty = lifecycle.StepRunning, row.Attempt+1,
		&now, step.Title, true
	c.failures = 0
	c.progress.Phase, c.progress.Message = step.Name, step.Title
}

// runStep runs the current step once; over when the claim was given back or the operation ended.
func (c *Context) runStep(ctx context.Context) (over bool, err error) {
	bounded, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	result, err := c.traced(bounded)
	switch {
	case errors.Is(err, queue.ErrFenced) || (err != nil && ctx.Err() != nil):
		return true, err
	case err != nil:
		return true, c.retry(ctx, err)
	case result.failure != nil && c.undoing():
		c.leave(result.failure.Message)
		return false, nil
	case result.failure != nil && c.gives():
		c.giveUp(result.failure.Message)
		return false, nil
	case result.failure != nil && c.ranOut(*result.failure):
		if err := c.force(ctx); err != nil {
			return true, err
		}
		return true, c.release(ctx, 0)
	case result.failure != nil:
		return true, c.fail(ctx, c.unlessStopped(ctx, *result.failure))
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
	row.State, row.EndedAt, row.Dirty = lifecycle.StepSucceeded, &now, true
	c.progress.Percent = c.step().Percent
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
	if c.asked {
		c.failures++
		return c.release(ctx, min(result.after, c.backoff()))
	}
	c.failures = 0
	return c.release(ctx, result.after)
}

// retry lets go for a growing while after an error.
func (c *Context) retry(ctx context.Context, cause error) error {
	c.failures++
	after := c.backoff()
	message, blame := "the platform met an internal error", FailureCause{Owner: operation.OwnerPlatform}
	var trouble *RetryableError
	if errors.As(cause, &trouble) {
		message, blame = trouble.Message, trouble.Cause
	}
	c.Log.Warn("step failed; tried again", "step", c.Step(), "failures", c.failures, "after", after, "error", cause)
	row := c.rows[c.at]
	row.Attempt, row.Dirty = row.Attempt+1, true
	c.Say(message + operation.TriedAgain)
	if err := c.blame(blame); err != nil {
		return err
	}
	return c.release(ctx, after)
}

// blame notes what the step waits for, for the case that the deadline comes first.
func (c *Context) blame(blame FailureCause) error {
	if blame.Code == "" {
		blame.Code = fault.DeadlineExceeded
	}
	if blame.Owner == "" {
		blame.Owner = c.step().Owner
	}
	return c.rows[c.at].Note(func(n *steprow.Notes) { n.Waits = &steprow.Waits{Code: blame.Code, Owner: blame.Owner} })
}

// backoff doubles with each failure in a row; the jitter keeps workers from knocking together.
func (c *Context) backoff() time.Duration {
	grown := min(backoffFirst<<min(c.failures-1, 10), backoffMax)
	return grown/2 + rand.N(grown/2+1) // #nosec G404 -- jitter
}

// release gives the claim back. News that came while it was held makes the operation due at once.
func (c *Context) release(ctx context.Context, after time.Duration) error {
	until := c.Now().Add(max(after, minWait))
	if due := c.due(); until.After(due) {
		until = due
		if soonest := c.Now().Add(minWait); until.Before(soonest) {
			until = soonest
		}
	}
	if !c.unsaved() {
		return c.releaseAt(ctx, until)
	}
	woken, args := false, c.released(until)
	err := c.WriteTogether(ctx, func(*pgx.Batch) {}, func(_ context.Context, _ *tx.Tx, locked *Locked) error {
		locked.Writes.Queue(queue.ReleaseSQL, args...).QueryRow(func(row pgx.Row) error { return row.Scan(&woken) })
		return nil
	})
	return c.freed(until, woken, err)
}

// releaseAlone gives the claim back without storing what the steps came to. Rows that the database refuses must not
// keep the failures from being counted: an operation that fails for good is found by their number.
func (c *Context) releaseAlone(ctx context.Context, after time.Duration) error {
	return c.releaseAt(ctx, c.Now().Add(max(after, minWait)))
}

func (c *Context) releaseAt(ctx context.Context, until time.Time) error {
	var woken bool
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	err := c.DB().Worker().QueryRow(ctx, queue.ReleaseSQL, c.released(until)...).Scan(&woken)
	return c.freed(until, woken, err)
}

// released returns the arguments of queue.ReleaseSQL, from before the operation is read again.
func (c *Context) released(until time.Time) []any {
	return []any{c.Op.ID, c.Op.ClaimEpoch, c.Op.Worker, until, c.failures, c.Op.Reported()}
}

// freed brings the loop's next claim forward after a release that came to err.
func (c *Context) freed(until time.Time, woken bool, err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return queue.ErrFenced
	}
	if err != nil {
		return fmt.Errorf("release %s: %w", c.Op.ID, err)
	}
	c.engine.due(until, woken)
	return nil
}

// unsaved reports whether there is more to store than the release itself.
func (c *Context) unsaved() bool {
	if len(c.rows) == 0 {
		return false
	}
	for _, row := range c.rows {
		if row.Dirty || row.Stored == "" {
			return true
		}
	}
	op := c.Op.Operation
	return c.intended(op, false) != (operation.Progress{Phase: op.Phase, Message: op.Message, Percent: op.Percent})
}
