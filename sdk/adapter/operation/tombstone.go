package operation

import (
	"fmt"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter/contract"
	"github.com/gpuaas/app-platform/sdk/adapter/internal/journal"
)

// A dispatch that is under way when its operation ends may arrive after the cancel: an operation that was not known
// when it was canceled gets a tombstone, by which a late dispatch is refused. A dispatch is valid for 90 seconds;
// tombstones are kept for longer, and at most maxTombstones of them.
const (
	tombstoneAge  = time.Hour
	maxTombstones = 10000
)

// findOrBury returns the operation of an id, or buries it when it is not known.
func (e *Engine) findOrBury(id string, attempt int) (*operation, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if op, ok := e.operations[id]; ok {
		return op, nil
	}
	if attempt <= e.tombstones[id].Attempt {
		return nil, nil
	}
	if err := e.journal.Bury(id, attempt); err != nil {
		return nil, fmt.Errorf("write tombstone of %s: %w", id, err)
	}
	e.tombstones[id] = journal.Tombstone{Attempt: attempt, At: time.Now()}
	if len(e.tombstones) > maxTombstones {
		e.exhumeLocked()
	}
	return nil, nil
}

// exhumeLocked forgets tombstones that no dispatch can meet any more.
func (e *Engine) exhumeLocked() {
	for id, one := range e.tombstones {
		if time.Since(one.At) < tombstoneAge {
			continue
		}
		if err := e.journal.Exhume(id); err != nil {
			e.options.Log.Error("expired tombstone not deleted", "operation", id, "error", err)
			continue
		}
		delete(e.tombstones, id)
	}
}

// stillborn journals an operation that was canceled before its dispatch arrived: it ends as canceled, and nothing of it
// is begun. The operation is locked.
func (e *Engine) stillborn(op *operation, dispatch contract.Dispatch, hash string) (Result, error) {
	defer op.mu.Unlock()
	dispatch.Platform.Token = ""
	status := contract.Status{OperationID: op.id, Attempt: dispatch.Attempt, State: contract.StateCanceled,
		Phase:   "canceled",
		Message: "it was canceled before its dispatch arrived", Members: []contract.MemberUpdate{},
		Error: &contract.OperationError{Code: contract.CodeCanceled,
			Message: "it was canceled before its dispatch arrived", Owner: contract.OwnerUser, Retryable: true}}
	err := e.recordLocked(op, journal.Record{Dispatch: &dispatch, Hash: hash, Generation: dispatch.Attempt,
		Status: &status, Mark: e.feed.Mark(), Canceled: true, Stillborn: true}, true)
	if err == nil {
		err = e.feed.Put(status)
	}
	if err != nil {
		e.unplace(op)
		return Result{}, err
	}
	return Result{Status: status, Done: true}, nil
}
