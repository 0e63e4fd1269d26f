package operation

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter/contract"
	"github.com/gpuaas/app-platform/sdk/adapter/internal/journal"
)

// operation is one journalled operation. Its mutex is held while a record is written, so that
// what is in memory is never ahead of what is on disk.
type operation struct {
	id string

	mu         sync.Mutex
	began      time.Time
	touched    time.Time
	dispatch   contract.Dispatch
	hash       string
	generation int
	status     contract.Status
	mark       uint64
	steps      map[string]json.RawMessage
	saved      map[string]string
	canceled   bool
	committed  bool
	stillborn  bool
	run        *Run
}

// apply puts a record's changes into memory.
func (o *operation) apply(rec journal.Record) {
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
	o.stillborn = o.stillborn || rec.Stillborn
}

// load rebuilds an operation from its journal. A file without a whole first record belongs to a
// dispatch that was never answered: it is deleted, and the result is nil.
func load(j *journal.Journal, id string) (*operation, error) {
	records, err := j.Read(id)
	if err != nil {
		return nil, err
	}
	if len(records) == 0 {
		return nil, j.Remove(id)
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
func (e *Engine) recordLocked(op *operation, rec journal.Record, durable bool) error {
	rec.At = time.Now().UTC()
	if err := e.journal.Append(op.id, rec, durable); err != nil {
		return err
	}
	op.apply(rec)
	return nil
}

// updateLocked changes an operation's status, journals it and publishes it. Progress alone is not
// worth a write to disk; what a restart must not forget is.
func (e *Engine) updateLocked(op *operation, durable bool, change func(*contract.Status)) error {
	status := op.status
	if status.State.Terminal() {
		return errEnded
	}
	change(&status)
	if status.State.Terminal() {
		return e.endLocked(op, status)
	}
	if !durable {
		op.status = status
	} else if err := e.recordLocked(op, journal.Record{Status: &status}, false); err != nil {
		return err
	}
	return e.feed.Put(status)
}

// endLocked journals a terminal status by rewriting the file: steps, checkpoints and the token
// have served.
func (e *Engine) endLocked(op *operation, status contract.Status) error {
	dispatch := op.dispatch
	dispatch.Platform.Token = ""
	rec := journal.Record{
		At: time.Now().UTC(), Began: op.began, Dispatch: &dispatch, Hash: op.hash, Generation: op.generation,
		Status: &status, Mark: e.feed.Mark(), Committed: op.committed, Canceled: op.canceled,
		Stillborn: op.stillborn,
	}
	if err := e.journal.Replace(op.id, rec); err != nil {
		return err
	}
	op.apply(rec)
	return e.feed.Put(status)
}

// Result is how a dispatch was answered.
type Result struct {
	// Status is the operation's status.
	Status contract.Status
	// Done reports whether nothing is left to do.
	Done bool
}

// place finds the operation of an id or adds one. A new one is locked, so that a second dispatch of the same id waits
// until the first is journalled. buried reports whether a tombstone covers the attempt.
func (e *Engine) place(id string, attempt int) (op *operation, fresh, buried bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if op, ok := e.operations[id]; ok {
		return op, false, false
	}
	op = &operation{id: id}
	op.mu.Lock()
	e.operations[id] = op
	return op, true, attempt <= e.tombstones[id].Attempt
}

func (e *Engine) unplace(op *operation) {
	e.mu.Lock()
	delete(e.operations, op.id)
	e.mu.Unlock()
}

func (e *Engine) find(id string) (*operation, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	op, ok := e.operations[id]
	return op, ok
}

// begin journals a new operation and starts it.
func (e *Engine) begin(op *operation, dispatch contract.Dispatch, hash string) (Result, error) {
	defer op.mu.Unlock()
	status := contract.Status{OperationID: op.id, Attempt: dispatch.Attempt, State: contract.StateAccepted,
		Phase: "accepted", Members: []contract.MemberUpdate{}}
	rec := journal.Record{Dispatch: &dispatch, Hash: hash, Generation: dispatch.Attempt, Status: &status}
	err := e.recordLocked(op, rec, true)
	if err == nil {
		if err = e.feed.Put(status); err != nil { // it was refused, so the next start must not resume it
			err = errors.Join(err, e.journal.Remove(op.id))
		}
	}
	if err != nil {
		e.unplace(op)
		return Result{}, err
	}
	e.know(op)
	e.startLocked(op, op.run)
	return Result{Status: status}, nil
}

// repeat answers a dispatch of an operation that is already known.
func (e *Engine) repeat(op *operation, dispatch contract.Dispatch, hash string) (Result, error) {
	op.mu.Lock()
	defer op.mu.Unlock()
	switch {
	case op.hash == "":
		return Result{}, contract.ErrorBody{Code: contract.CodeUnavailable,
			Message: "the first dispatch of this operation was not journalled", Retryable: true}
	case op.hash != hash:
		return Result{}, errMismatch
	case dispatch.Attempt < op.dispatch.Attempt:
		return Result{}, staleFence(op.dispatch.Attempt)
	case dispatch.Attempt == op.dispatch.Attempt:
		return Result{Status: op.status, Done: op.status.State.Terminal()}, nil
	}
	return e.raiseLocked(op, dispatch)
}

// raiseLocked accepts a higher attempt. A run under way goes on with the new deadline and token, or
// starts again when the attempt brings force. A failed operation starts again. One that succeeded or
// was canceled stays as it is.
func (e *Engine) raiseLocked(op *operation, dispatch contract.Dispatch) (Result, error) {
	status := op.status
	status.Attempt = dispatch.Attempt
	failed := status.State == contract.StateFailed
	if status.State.Terminal() && !failed {
		before := op.dispatch.Attempt
		op.dispatch.Attempt = dispatch.Attempt
		if err := e.endLocked(op, status); err != nil {
			op.dispatch.Attempt = before // or a repetition would be answered with the status of the attempt before
			return Result{}, err
		}
		return Result{Status: status, Done: true}, nil
	}
	if failed || (dispatch.Force && !op.dispatch.Force) {
		return e.againLocked(op, dispatch, !failed)
	}
	// Force is not taken back from a run that began with it.
	dispatch.Force = op.dispatch.Force
	if err := e.raisedLocked(op, journal.Record{Dispatch: &dispatch, Status: &status}); err != nil {
		return Result{}, err
	}
	if op.run != nil {
		op.run.extend(dispatch)
	}
	return Result{Status: status}, nil
}

// againLocked starts an operation again: one that failed, or with force one that is under way. The
// latter keeps the states of its members and its point of no return, and drops its request to cancel.
func (e *Engine) againLocked(op *operation, dispatch contract.Dispatch, forced bool) (Result, error) {
	status := contract.Status{OperationID: op.id, Attempt: dispatch.Attempt, State: contract.StateAccepted,
		Phase: "accepted", Members: []contract.MemberUpdate{}}
	rec := journal.Record{Dispatch: &dispatch, Status: &status, Generation: dispatch.Attempt}
	if forced {
		status.Members, rec.Committed = op.status.Members, op.committed
	}
	if err := e.raisedLocked(op, rec); err != nil {
		return Result{}, err
	}
	before := op.run
	if before != nil {
		before.cancel(errForced)
	}
	e.startLocked(op, before)
	return Result{Status: status}, nil
}

func (e *Engine) raisedLocked(op *operation, rec journal.Record) error {
	if err := e.recordLocked(op, rec, true); err != nil {
		return err
	}
	return e.feed.Put(*rec.Status)
}

// errEnded is the error of an update of an operation that has ended: the end is final.
var errEnded = errors.New("the operation has ended")

var errMismatch = contract.ErrorBody{Code: contract.CodeBodyMismatch,
	Message: "the operation was dispatched with another specification"}

func staleFence(current int) error {
	return contract.ErrorBody{Code: contract.CodeStaleFence, Message: fmt.Sprintf("attempt %d has been dispatched",
		current), Path: "attempt"}
}
