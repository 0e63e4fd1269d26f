package operation

import (
	"context"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter/contract"
	"github.com/gpuaas/app-platform/sdk/adapter/internal/journal"
)

// cancelWait is how long an answer to a cancel waits for the run to end.
const cancelWait = 10 * time.Second

// Cancel asks a run to stop, if that is still safe, and returns the outcome.
func (e *Engine) Cancel(ctx context.Context, id string, attempt int) (contract.CancelResult, error) {
	op, err := e.findOrBury(id, attempt)
	if err != nil {
		return contract.CancelResult{}, err
	}
	if op == nil {
		return contract.CancelResult{Outcome: contract.CancelUnknown, Tombstone: true,
			Message: "this operation was never dispatched; this attempt can no longer start it"}, nil
	}
	op.mu.Lock()
	if attempt < op.dispatch.Attempt {
		defer op.mu.Unlock()
		return contract.CancelResult{}, staleFence(op.dispatch.Attempt)
	}
	if op.status.State.Terminal() || op.committed {
		defer op.mu.Unlock()
		return cancelOutcome(op), nil
	}
	if err := e.recordLocked(op, journal.Record{Canceled: true}, true); err != nil {
		op.mu.Unlock()
		return contract.CancelResult{}, err
	}
	run := op.run
	op.mu.Unlock()
	if run != nil {
		run.cancel(contract.ErrCanceled)
		awaitEnd(ctx, run.done)
	}
	op.mu.Lock()
	defer op.mu.Unlock()
	return cancelOutcome(op), nil
}

func awaitEnd(ctx context.Context, done <-chan struct{}) {
	timer := time.NewTimer(cancelWait)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	case <-ctx.Done():
	}
}

func cancelOutcome(op *operation) contract.CancelResult {
	switch {
	case op.status.State == contract.StateCanceled:
		return contract.CancelResult{Outcome: contract.CancelDone, Message: "the operation was stopped"}
	case op.status.State.Terminal():
		return contract.CancelResult{Outcome: contract.CancelTooLate,
			Message: "the operation has " + string(op.status.State)}
	case op.committed:
		return contract.CancelResult{Outcome: contract.CancelTooLate,
			Message: "the operation can no longer be stopped safely"}
	}
	return contract.CancelResult{Outcome: contract.CancelUnknown,
		Message: "the operation is stopping and has not ended yet"}
}
