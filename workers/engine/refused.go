package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ending"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/service/ledger/queue"
)

// defaultRefusals is how often an end may be refused before the operation ends with no more than its end: with the
// pauses between tries, after half a minute to a minute.
const defaultRefusals = 8

// refused counts a transaction that was to end the operation, or to turn it back, and that failed by cause, for a
// reason that lasts: its blockers say so from then on. After the last try an end without success is written as bare as
// the database takes it. A success is tried until the deadline, and fails then. It returns cause unless the operation
// has ended.
func (c *Context) refused(ctx context.Context, as lifecycle.OperationState, failure operation.Failure,
	cause error) error {
	if again := (*RerunStep)(nil); errors.Is(cause, queue.ErrFenced) || errors.As(cause, &again) || ctx.Err() != nil {
		return cause
	}
	why, lasts := ending.Lasting(cause)
	if !lasts {
		return cause
	}
	c.Log.Error("the operation's end is refused", "state", as, "error", cause)
	times, err := c.countRefusal(ctx, as, why)
	if err != nil || as == lifecycle.OperationSucceeded || times < c.engine.config.Refusals {
		return errors.Join(cause, err)
	}
	return c.endBare(ctx, failure,
		fmt.Sprintf("the platform could not record it as %s in %d tries (%s), so only its end is recorded", as,
			times, why))
}

// countRefusal notes the refusal of an end beside all that was refused with it, and returns how many there were in a
// row.
func (c *Context) countRefusal(ctx context.Context, as lifecycle.OperationState, why string) (times int, err error) {
	bounded, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	err = c.DB().Worker().QueryRow(bounded, queue.RefusalSQL, c.Op.ID, c.Op.ClaimEpoch, c.Op.Worker, string(as),
		why).Scan(&times)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, queue.ErrFenced
	}
	if err != nil {
		return 0, fmt.Errorf("note the refused end of %s: %w", c.Op.ID, err)
	}
	return times, nil
}

// endBare ends the operation with no more than its end, saying why, and what would have been its end.
func (c *Context) endBare(ctx context.Context, failure operation.Failure, why string) error {
	bare := operation.Failure{Code: ending.Refused, Owner: operation.OwnerPlatform, Retryable: failure.Retryable,
		Message: fmt.Sprintf("%s; it was to end with %s: %s", why, failure.Code, failure.Message)}.Clipped()
	bounded, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	var left []string
	var locking *queue.Locking
	err := c.DB().AsPipelined(bounded, c.engine.actor, func(batch *pgx.Batch) {
		locking = c.Op.QueueLock(batch)
	}, func(ctx context.Context, t *tx.Tx, _ *pgx.Batch) error {
		instance, err := locking.Done()
		if err != nil {
			return err
		}
		e := &ending.Ending{Tx: t, Op: c.Op.Operation, Instance: instance, Failure: bare, Why: why}
		left, err = e.Bare(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("record only the end of %s: %w", c.Op.ID, err)
	}
	c.engine.config.Metrics.Ended(string(c.Op.Kind), string(lifecycle.OperationFailed))
	c.Log.Error("operation ended, and only its end was recorded", "message", bare.Message, "left_out", left)
	c.disown(ctx, failure)
	return nil
}

// disown asks the adapter to stop, after a bare end: the undo steps, which ask otherwise, do not run.
func (c *Context) disown(ctx context.Context, failure operation.Failure) {
	if c.kind.Cancel == nil || c.Op.DispatchAttempt == 0 {
		c.abandon(ctx, failure)
		return
	}
	bounded, cancel := context.WithTimeout(ctx, letGo)
	defer cancel()
	if _, err := c.kind.Cancel(bounded, c); err != nil && !errors.Is(err, queue.ErrFenced) {
		c.Log.Info("the operation could not be stopped at the adapter", "error", err)
	}
}
