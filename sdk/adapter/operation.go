package adapter

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"
)

// operation is one journalled operation. Its mutex is held while a record is written, so that
// what is in memory is never ahead of what is on disk.
type operation struct {
	id string

	mu         sync.Mutex
	began      time.Time
	touched    time.Time
	dispatch   Dispatch
	hash       string
	generation int
	status     Status
	mark       uint64
	steps      map[string]json.RawMessage
	saved      map[string]string
	canceled   bool
	committed  bool
	run        *Run
}

// apply puts a record's changes into memory.
func (o *operation) apply(rec record) {
	o.touched = rec.At
	if rec.Dispatch != nil {
		if o.hash == "" {
			o.began, o.hash = rec.At, rec.Hash
			if !rec.Began.IsZero() {
				o.began = rec.Began
			}
		}
		o.dispatch = *rec.Dispatch
	}
	if rec.Generation > 0 {
		o.generation = rec.Generation
		o.steps, o.saved = make(map[string]json.RawMessage), make(map[string]string)
		o.canceled, o.committed = false, false
	}
	if rec.Status != nil {
		o.status, o.mark = *rec.Status, rec.Mark
	}
	if rec.Step != "" {
		o.steps[rec.Step] = rec.Spec
	}
	for name, value := range rec.Saved {
		o.saved[name] = value
	}
	o.canceled = o.canceled || rec.Canceled
	o.committed = o.committed || rec.Committed
}

// load rebuilds an operation from its journal. A file without a whole first record is of a
// dispatch that was never answered; it is no operation.
func load(j *journal, id string) (*operation, error) {
	records, err := j.read(id)
	if err != nil {
		return nil, err
	}
	if len(records) == 0 {
		return nil, j.remove(id)
	}
	if records[0].Dispatch == nil {
		return nil, fmt.Errorf("journal of %s does not begin with a dispatch", id)
	}
	op := &operation{id: id}
	for _, rec := range records {
		op.apply(rec)
	}
	return op, nil
}

// recordLocked journals a change, durably on request, and applies it.
func (k *Kit) recordLocked(op *operation, rec record, durable bool) error {
	rec.At = time.Now().UTC()
	if err := k.journal.append(op.id, rec, durable); err != nil {
		return err
	}
	op.apply(rec)
	return nil
}

// updateLocked changes an operation's status, journals it and publishes it. Progress alone is not
// worth a write to disk; what a restart must not forget is.
func (k *Kit) updateLocked(op *operation, durable bool, change func(*Status)) error {
	status := op.status
	if status.State.Terminal() {
		return errEnded
	}
	change(&status)
	if status.State.Terminal() {
		return k.endLocked(op, status)
	}
	if !durable {
		op.status = status
	} else if err := k.recordLocked(op, record{Status: &status}, false); err != nil {
		return err
	}
	return k.feed.put(status)
}

// endLocked journals a terminal status by rewriting the file: steps, checkpoints and the token
// have served.
func (k *Kit) endLocked(op *operation, status Status) error {
	dispatch := op.dispatch
	dispatch.Platform.Token = ""
	rec := record{
		At: time.Now().UTC(), Began: op.began, Dispatch: &dispatch, Hash: op.hash, Generation: op.generation,
		Status: &status, Mark: k.feed.mark(), Committed: op.committed, Canceled: op.canceled,
	}
	if err := k.journal.replace(op.id, rec); err != nil {
		return err
	}
	op.apply(rec)
	return k.feed.put(status)
}

// dispatchResult is what a dispatch came to: the status, and whether there is nothing left to do.
type dispatchResult struct {
	status Status
	done   bool
}

// place finds the operation of an id or makes room for it. A new one comes locked, so that a
// second dispatch of the same id waits for the first to be journalled.
func (k *Kit) place(id string) (op *operation, fresh bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if op, ok := k.operations[id]; ok {
		return op, false
	}
	op = &operation{id: id}
	op.mu.Lock()
	k.operations[id] = op
	return op, true
}

func (k *Kit) unplace(op *operation) {
	k.mu.Lock()
	delete(k.operations, op.id)
	k.mu.Unlock()
}

func (k *Kit) find(id string) (*operation, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	op, ok := k.operations[id]
	return op, ok
}

// begin journals a new operation and starts it.
func (k *Kit) begin(op *operation, dispatch Dispatch, hash string) (dispatchResult, error) {
	defer op.mu.Unlock()
	status := Status{OperationID: op.id, Attempt: dispatch.Attempt, State: StateAccepted, Phase: "accepted", Members: []MemberUpdate{}}
	rec := record{Dispatch: &dispatch, Hash: hash, Generation: dispatch.Attempt, Status: &status}
	err := k.recordLocked(op, rec, true)
	if err == nil {
		err = k.feed.put(status)
	}
	if err != nil {
		k.unplace(op)
		return dispatchResult{}, err
	}
	k.know(op)
	k.startLocked(op, op.run)
	return dispatchResult{status: status}, nil
}

// repeat answers a dispatch of an operation that is already known.
func (k *Kit) repeat(op *operation, dispatch Dispatch, hash string) (dispatchResult, error) {
	op.mu.Lock()
	defer op.mu.Unlock()
	switch {
	case op.hash == "":
		return dispatchResult{}, ErrorBody{Code: CodeUnavailable, Message: "the first dispatch of this operation was not journalled", Retryable: true}
	case op.hash != hash:
		return dispatchResult{}, errMismatch
	case dispatch.Attempt < op.dispatch.Attempt:
		return dispatchResult{}, staleFence(op.dispatch.Attempt)
	case dispatch.Attempt == op.dispatch.Attempt:
		return dispatchResult{status: op.status, done: op.status.State.Terminal()}, nil
	}
	return k.raiseLocked(op, dispatch)
}

// raiseLocked takes a higher attempt: a run under way goes on with the new deadline and token, or
// begins anew when force came with the attempt; a failed one begins anew; and what succeeded or was
// canceled stays as it is.
func (k *Kit) raiseLocked(op *operation, dispatch Dispatch) (dispatchResult, error) {
	status := op.status
	status.Attempt = dispatch.Attempt
	failed := status.State == StateFailed
	if status.State.Terminal() && !failed {
		op.dispatch.Attempt = dispatch.Attempt
		return dispatchResult{status: status, done: true}, k.endLocked(op, status)
	}
	if failed || (dispatch.Force && !op.dispatch.Force) {
		return k.againLocked(op, dispatch, !failed)
	}
	// Force is not taken back from a run that began with it.
	dispatch.Force = op.dispatch.Force
	if err := k.raisedLocked(op, record{Dispatch: &dispatch, Status: &status}); err != nil {
		return dispatchResult{}, err
	}
	if op.run != nil {
		op.run.extend(dispatch)
	}
	return dispatchResult{status: status}, nil
}

// againLocked begins an operation anew: one that failed, or with force one that is under way. What
// the members came to and the point of no return stay true of the latter; its request to cancel
// does not.
func (k *Kit) againLocked(op *operation, dispatch Dispatch, forced bool) (dispatchResult, error) {
	status := Status{OperationID: op.id, Attempt: dispatch.Attempt, State: StateAccepted, Phase: "accepted", Members: []MemberUpdate{}}
	rec := record{Dispatch: &dispatch, Status: &status, Generation: dispatch.Attempt}
	if forced {
		status.Members, rec.Committed = op.status.Members, op.committed
	}
	if err := k.raisedLocked(op, rec); err != nil {
		return dispatchResult{}, err
	}
	before := op.run
	if before != nil {
		before.cancel(errForced)
	}
	k.startLocked(op, before)
	return dispatchResult{status: status}, nil
}

func (k *Kit) raisedLocked(op *operation, rec record) error {
	if err := k.recordLocked(op, rec, true); err != nil {
		return err
	}
	return k.feed.put(*rec.Status)
}

// errEnded is what an update of an operation that has ended meets: the end is final.
var errEnded = errors.New("the operation has ended")

var errMismatch = ErrorBody{Code: CodeBodyMismatch, Message: "the operation was dispatched with another specification"}

func staleFence(current int) error {
	return ErrorBody{Code: CodeStaleFence, Message: fmt.Sprintf("attempt %d has been dispatched", current), Path: "attempt"}
}
