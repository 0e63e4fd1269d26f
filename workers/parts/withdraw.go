package parts

import (
	"context"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/adapterclient"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/workers/engine"
)

// superseded is what became of an operation that another one took the place of.
type superseded struct {
	Operation ids.ID `json:"operation"`
	Outcome   string `json:"outcome"`
	Message   string `json:"message"`
}

// cancelSuperseded asks the adapter to stop the operations that this one took the place of. It is
// tried once: what they began is undone or torn down by this one either way.
func (w *Work) cancelSuperseded(ctx context.Context, c *engine.Context, s *Snapshot) []superseded {
	var out []superseded
	for _, id := range operation.PrivateOf(c.Op.Operation).Supersedes {
		out = append(out, w.cancelOther(ctx, c, s, id))
	}
	return out
}

func (w *Work) cancelOther(ctx context.Context, c *engine.Context, s *Snapshot, id ids.ID) superseded {
	out := superseded{Operation: id, Outcome: string(adapter.CancelUnknown)}
	var attempt int
	err := c.DB().Worker().QueryRow(ctx, `SELECT dispatch_attempt FROM operation WHERE id = $1`, id).Scan(&attempt)
	if err == nil && attempt == 0 {
		out.Outcome, out.Message = "never_dispatched", "it was never sent to the adapter"
		return out
	}
	if err == nil {
		out.Outcome, out.Message, err = w.cancel(ctx, c, s.target, id, attempt)
	}
	if err != nil {
		out.Message = "it could not be stopped at the adapter"
		c.Log.Warn("superseded operation not canceled at the adapter", "superseded", id, "error", err)
	}
	return out
}

func (w *Work) cancel(ctx context.Context, c *engine.Context, target adapterclient.Target, id ids.ID,
	attempt int) (outcome, message string, err error) {
	result, err := w.stop(ctx, c, target, id, attempt)
	if err != nil {
		return string(adapter.CancelUnknown), "", err
	}
	return string(result.Outcome), result.Message, nil
}

// Abandon asks the adapter to stop an operation that no one waits for any more.
func (w *Work) Abandon(ctx context.Context, c *engine.Context) {
	if c.Op.DispatchAttempt == 0 {
		return
	}
	s, err := w.snapshot(ctx, c)
	if err == nil {
		_, _, err = w.cancel(ctx, c, s.target, c.Op.ID, c.Op.DispatchAttempt)
	}
	if err != nil {
		c.Log.Info("failed operation not canceled at the adapter", "error", err)
	}
}

// Stop asks the adapter to stop the operation, as was requested. Its last reported end counts more than
// its answer. Without an answer of the contract the outcome is unknown, and the caller asks again.
func (w *Work) Stop(ctx context.Context, c *engine.Context) (engine.Answer, error) {
	if status := operation.StoredStatus(c.Op.Operation); status != nil && status.State.Terminal() {
		return lastWord(status), nil
	}
	s, err := load(ctx, c.DB().Worker(), c.Op.Operation)
	if err != nil {
		return engine.Answer{}, err
	}
	result, err := w.stop(ctx, c, s.target, c.Op.ID, c.Op.DispatchAttempt)
	refused, ok := adapterclient.As(err)
	switch {
	case ok:
		return engine.Answer{Outcome: adapter.CancelUnknown, Message: refused.Reason()}, nil
	case err != nil:
		return engine.Answer{}, err
	case !result.Outcome.Valid():
		return engine.Answer{Outcome: adapter.CancelUnknown,
			Message: "adapter " + s.target.Name + " gave an answer that is not in the contract"}, nil
	}
	if buried, err := neverSent(c); err != nil {
		return engine.Answer{}, err
	} else if buried && result.Tombstone {
		return engine.Answer{Outcome: adapter.CancelDone, Message: result.Message}, nil
	}
	if result.Outcome == adapter.CancelDone {
		if err := w.parting(ctx, c, s); err != nil {
			return engine.Answer{}, err
		}
	}
	return engine.Answer{Outcome: result.Outcome, Message: result.Message}, nil
}

// neverSent reports whether no dispatch has been accepted: a tombstone then proves that nothing was begun. An adapter
// that accepted one, and does not know the operation, has forgotten it.
func neverSent(c *engine.Context) (bool, error) {
	var sent dispatched
	err := c.Evidence("dispatch", &sent)
	return sent.Attempt == 0, err
}

// parting stores the adapter's last status of an operation that it has stopped: the states of its
// members. An adapter that does not return one is not asked again.
func (w *Work) parting(ctx context.Context, c *engine.Context, s *Snapshot) error {
	status, err := w.status(ctx, c, s.target)
	if err != nil || status.Attempt < c.Op.DispatchAttempt {
		c.Log.Info("the adapter reported nothing more of a canceled operation", "error", err)
		return nil
	}
	return c.Write(ctx, func(ctx context.Context, t *tx.Tx, locked *engine.Locked) error {
		_, err := operation.Absorb(ctx, t, locked.Instance, locked.Op, status)
		return err
	})
}

// lastWord is what an adapter's end means for a request to stop.
func lastWord(status *adapter.Status) engine.Answer {
	switch status.State {
	case adapter.StateCanceled:
		return engine.Answer{Outcome: adapter.CancelDone, Message: "the adapter stopped it"}
	case adapter.StateSucceeded:
		return engine.Answer{Outcome: adapter.CancelTooLate, Message: "too late: the adapter had finished it"}
	}
	return engine.Answer{Outcome: adapter.CancelUnknown, Message: "the adapter ended it as " + string(status.State)}
}

// Withdrawn is the evidence of the step that has the adapter stop before its work is undone.
type Withdrawn struct {
	Outcome string `json:"outcome"` // the adapter's answer or its end; "never_dispatched", "rejected"
	Message string `json:"message,omitempty"`
}

// Withdraw has the adapter stop an operation that is to be undone, unless it has ended it by itself. An
// adapter that does not say what became of it is waited for during one grace.
func (w *Work) Withdraw() engine.Step {
	return engine.Step{
		Name: "withdraw", Title: "asking the adapter to stop", Owner: operation.OwnerAdapter,
		Run: func(ctx context.Context, c *engine.Context) (engine.Result, error) {
			status := operation.StoredStatus(c.Op.Operation)
			switch {
			case c.Op.DispatchAttempt == 0 || c.Op.ErrorCode == string(fault.PlanStale):
				return engine.Done(Withdrawn{Outcome: "never_dispatched"}), nil
			case c.Op.ErrorCode == string(fault.AdapterRejected):
				return engine.Done(Withdrawn{Outcome: "rejected"}), nil
			case status != nil && status.State.Terminal():
				return engine.Done(Withdrawn{Outcome: string(status.State)}), nil
			case c.Op.ErrorCode == string(fault.Canceled):
				return engine.Done(Withdrawn{Outcome: string(adapter.CancelDone), Message: c.Op.CancelMessage}), nil
			}
			answer, err := w.Stop(ctx, c)
			if err != nil {
				return engine.Result{}, err
			}
			left := c.Began().Add(c.Grace()).Sub(c.Now())
			if answer.Outcome == adapter.CancelDone || left <= 0 {
				return engine.Done(Withdrawn{Outcome: string(answer.Outcome), Message: answer.Message}), nil
			}
			return engine.Wait(min(w.Pace.Poll, left), "the adapter was asked to stop: "+answer.Message,
					engine.FailureCause{}),
				nil
		},
	}
}
