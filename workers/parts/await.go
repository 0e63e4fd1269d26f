package parts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/internal/adapterclient"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/workers/engine"
)

// maxRetryAfter bounds how long an adapter may put the next request off.
const maxRetryAfter = time.Minute

// Answered is the evidence of the await step: the adapter's last report.
type Answered struct {
	State    adapter.State              `json:"state"`
	Attempt  int                        `json:"attempt"`
	Evidence map[string]json.RawMessage `json:"evidence,omitempty"`
}

// Await waits for the adapter's word that it is done. It comes by the feed, which wakes the
// operation; asking is the backup. An adapter that never reports still completes.
func (w *Work) Await() engine.Step {
	return engine.Step{
		Name: "await", Title: "the adapter works on it", Percent: 80, Owner: operation.OwnerAdapter,
		Run: func(ctx context.Context, c *engine.Context) (engine.Result, error) {
			if status := operation.StoredStatus(c.Op.Operation); status != nil && status.State.Terminal() {
				return w.ended(c, status)
			}
			if c.Cached != nil { // dispatched a moment ago, under this claim
				return w.linger(ctx, c)
			}
			return w.ask(ctx, c)
		},
	}
}

// ask gets the status from the adapter.
func (w *Work) ask(ctx context.Context, c *engine.Context) (engine.Result, error) {
	s, err := load(ctx, c.DB().Worker(), c.Op.Operation)
	if err != nil {
		return engine.Result{}, err
	}
	status, err := w.status(ctx, c, s.target)
	refused, ok := adapterclient.As(err)
	switch {
	case ok && refused.Kind == adapterclient.Missing:
		return w.remind(ctx, c, s)
	case ok:
		return engine.Result{}, trouble(refused)
	case err != nil:
		return engine.Result{}, err
	case status.Attempt < c.Op.DispatchAttempt:
		return w.resend(ctx, c, s)
	case status.Attempt > c.Op.DispatchAttempt:
		return engine.Result{}, &engine.RetryableError{Cause: engine.FailureCause{Code: fault.AdapterInvalid,
			Owner: operation.OwnerAdapter},
			Message: fmt.Sprintf("adapter %s answers for attempt %d, and %d is the highest that it was sent",
				s.target.Name, status.Attempt, c.Op.DispatchAttempt)}
	}
	err = c.Write(ctx, func(ctx context.Context, t *tx.Tx, locked *engine.Locked) error {
		_, err := operation.Absorb(ctx, t, locked.Instance, locked.Op, status)
		return err
	})
	if err != nil {
		return engine.Result{}, err
	}
	if status.State.Terminal() {
		return w.ended(c, &status)
	}
	after := min(time.Duration(status.RetryAfterSeconds)*time.Second, maxRetryAfter)
	return engine.Wait(max(after, w.crowds.Pause(ctx, c, w.Pace.Poll)), "", engine.FailureCause{}), nil
}

// reminded is the step's state: the attempt that the adapter last accepted again.
type reminded struct {
	Accepted int `json:"accepted"`
}

// remind dispatches again, on purpose, to an adapter that accepted the operation and has forgotten it.
func (w *Work) remind(ctx context.Context, c *engine.Context, s *Snapshot) (engine.Result, error) {
	var first dispatched
	var later reminded
	if err := errors.Join(c.Evidence("dispatch", &first), c.State(&later)); err != nil {
		return engine.Result{}, err
	}
	if max(first.Attempt, later.Accepted) >= c.Op.DispatchAttempt {
		if err := w.raise(ctx, c); err != nil {
			return engine.Result{}, err
		}
	}
	return w.resend(ctx, c, s)
}

// resend dispatches the current attempt, which the adapter does not have.
func (w *Work) resend(ctx context.Context, c *engine.Context, s *Snapshot) (engine.Result, error) {
	_, failure, err := w.send(ctx, c, s)
	if err != nil {
		return engine.Result{}, err
	}
	if failure != nil {
		return engine.Fail(*failure), nil
	}
	if err := c.SetState(reminded{Accepted: c.Op.DispatchAttempt}); err != nil {
		return engine.Result{}, err
	}
	return engine.Wait(w.crowds.Pause(ctx, c, w.Pace.Poll), "", engine.FailureCause{}), nil
}

// outcome is what the adapter's end means for the step.
func outcome(name string, status *adapter.Status) engine.Result {
	if status.State == adapter.StateSucceeded {
		return engine.Done(Answered{State: status.State, Attempt: status.Attempt, Evidence: status.Evidence})
	}
	failure := operation.Failure{Code: string(fault.AdapterFailed), Owner: operation.OwnerAdapter,
		Message: fmt.Sprintf("adapter %s ended it as %s", name, status.State)}
	if status.Error != nil {
		if status.Error.Code == adapter.CodeDeadline {
			failure.Code = string(fault.DeadlineExceeded)
		}
		failure.Message = status.Error.Code + ": " + status.Error.Message
		failure.Retryable = status.Error.Retryable
		if status.Error.Owner.Valid() {
			failure.Owner = string(status.Error.Owner)
		}
	}
	return engine.Fail(failure)
}
