package adapter

import (
	"context"
	"time"
)

// cancelWait is how long an answer to a cancel waits for the run to end.
const cancelWait = 10 * time.Second

// cancelOperation asks a run to stop, if that is still safe, and says what came of it.
func (k *Kit) cancelOperation(ctx context.Context, id string, attempt int) (CancelResult, error) {
	op, ok := k.find(id)
	if !ok {
		return CancelResult{Outcome: CancelUnknown, Message: "no such operation has been dispatched"}, nil
	}
	op.mu.Lock()
	if attempt < op.dispatch.Attempt {
		defer op.mu.Unlock()
		return CancelResult{}, staleFence(op.dispatch.Attempt)
	}
	if op.status.State.Terminal() || op.committed {
		defer op.mu.Unlock()
		return cancelOutcome(op), nil
	}
	if err := k.recordLocked(op, record{Canceled: true}, true); err != nil {
		op.mu.Unlock()
		return CancelResult{}, err
	}
	run := op.run
	op.mu.Unlock()
	if run != nil {
		run.cancel(ErrCanceled)
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

func cancelOutcome(op *operation) CancelResult {
	switch {
	case op.status.State == StateCanceled:
		return CancelResult{Outcome: CancelDone, Message: "the operation was stopped"}
	case op.status.State.Terminal():
		return CancelResult{Outcome: CancelTooLate, Message: "the operation has " + string(op.status.State)}
	case op.committed:
		return CancelResult{Outcome: CancelTooLate, Message: "the operation can no longer be stopped safely"}
	}
	return CancelResult{Outcome: CancelUnknown, Message: "the operation was asked to stop and has not ended yet"}
}
