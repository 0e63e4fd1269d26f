package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// never is when a step is due that bounds itself.
const never = 24 * time.Hour

// ForcedSince returns since when force is used: from the start when the caller requested it, or from the deadline on.
func (c *Context) ForcedSince() (since time.Time, forced bool) {
	switch {
	case c.Op.ForcedAt != nil:
		return *c.Op.ForcedAt, true
	case c.Op.Force && c.Op.StartedAt != nil:
		return *c.Op.StartedAt, true
	case c.Op.Force:
		return c.Op.CreatedAt, true
	}
	return time.Time{}, false
}

// Due is when the current step must have ended.
func (c *Context) Due() time.Time { return c.due() }

func (c *Context) due() time.Time {
	if len(c.rows) == 0 || c.kind == nil {
		return c.Op.Deadline
	}
	if c.undoing() {
		return c.UndoneBy().Add(c.engine.config.Grace) // its steps know when to stop; this is for one that does not
	}
	since, forced := c.ForcedSince()
	step := c.step()
	switch {
	case !forced:
		return c.Op.Deadline
	case step.OwnDeadline:
		return since.Add(never)
	case step.DoubleGrace:
		return latest(since.Add(2*c.engine.config.Grace), c.Op.Deadline)
	}
	return since.Add(c.engine.config.Grace)
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Bound is how long a step that endures force may still try.
func (c *Context) Bound() time.Duration { return c.engine.config.Undo }

// Grace is how long an adapter gets to stop, or to finish by force.
func (c *Context) Grace() time.Duration { return c.engine.config.Grace }

// gives reports whether force skips the current step.
func (c *Context) gives() bool {
	_, forced := c.ForcedSince()
	return forced && c.step().SkipWhenForced && !c.undoing()
}

// giveUp skips the step, and its message states why.
func (c *Context) giveUp(why string) {
	row, now := c.rows[c.at], c.Now()
	c.Say("skipped by force: " + why)
	row.State, row.EndedAt, row.Dirty = lifecycle.StepSkipped, &now, true
	c.progress.Percent = c.step().Percent
	c.failures = 0
}

// mayForce reports whether force may begin at the deadline: the caller chose that, and it has not begun yet.
func (c *Context) mayForce() bool {
	_, forced := c.ForcedSince()
	return !forced && c.Op.OnDeadline == lifecycle.DeadlineForce && c.Op.Kind.Effects().Forcible &&
		c.Op.State == lifecycle.OperationRunning
}

// nearly is how long before the deadline, by clocks that differ, an adapter's end counts as one by it.
const nearly = 5 * time.Second

// ranOut reports whether a failure is nothing but the deadline, as the adapter met it, and the caller
// chose force for that case.
func (c *Context) ranOut(failure operation.Failure) bool {
	return c.mayForce() && (failure.Code == string(fault.DeadlineExceeded) || c.Op.Deadline.Sub(c.Now()) < nearly)
}

// force goes on by force. An adapter that has not done the work gets it again: the attempt is raised
// before anything is sent, so that a worker that takes over sends the same.
func (c *Context) force(ctx context.Context) error {
	status := operation.StoredStatus(c.Op.Operation)
	ended := status != nil && status.State == adapter.StateSucceeded
	err := c.Write(ctx, func(ctx context.Context, t *tx.Tx, locked *Locked) error {
		locked.Emit(event.Draft{Type: lifecycle.EventOperationProgress,
			Message: "its deadline passed; it continues by force", Payload: map[string]any{"forced": true}})
		_, err := t.Exec(ctx, `UPDATE operation SET forced_at = $2, dispatch_attempt = dispatch_attempt + $3,
			adapter_status = CASE WHEN $3 > 0 THEN NULL ELSE adapter_status END
			WHERE id = $1`, locked.Op.ID, t.Now, raised(locked.Op.DispatchAttempt, ended))
		if err != nil {
			return fmt.Errorf("force %s: %w", locked.Op.ID, err)
		}
		t.Wake(event.OperationTopic(locked.Op.ID))
		return nil
	})
	if err != nil {
		return err
	}
	c.Cached = nil
	c.Log.Warn("the deadline passed; it continues by force")
	return c.Op.Refresh(ctx, c.DB().Worker())
}

func raised(attempt int, ended bool) int {
	if attempt == 0 || ended { // never sent, or nothing is left to do for the adapter
		return 0
	}
	return 1
}
