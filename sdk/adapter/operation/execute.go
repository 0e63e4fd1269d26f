package operation

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter/api"
	"github.com/gpuaas/app-platform/sdk/adapter/contract"
	"github.com/gpuaas/app-platform/sdk/adapter/internal/wire"
	"github.com/gpuaas/app-platform/sdk/client"
)

// endPause is the time between two tries to journal the end of an operation.
const endPause = time.Second

// startLocked begins or resumes a run. The operation is locked. The run waits for before, the
// run it takes the place of, where there is one.
func (e *Engine) startLocked(op *operation, before *Run) {
	d := op.dispatch
	log := e.options.Log.With("operation", op.id, "kind", d.Kind, "instance", d.Instance.ID, "correlation_id",
		d.CorrelationID)
	if id := api.TraceID(d.Traceparent); id != "" {
		log = log.With("trace_id", id)
	}
	ctx, cancel := context.WithCancelCause(client.WithTraceparent(e.ctx, d.Traceparent))
	run := &Run{
		engine: e, op: op, log: log, dispatch: d, generation: op.generation,
		client: api.NewClient(d.Platform, d.CorrelationID, log),
		cancel: cancel, done: make(chan struct{}), poke: make(chan struct{}, 1),
	}
	run.setDeadline(d.Deadline)
	if op.canceled {
		cancel(contract.ErrCanceled)
	}
	op.run = run
	e.runs.Go(func() {
		if before != nil {
			<-before.done
		}
		e.execute(runContext{Context: ctx, run: run}, run)
	})
}

// runContext is a context whose deadline a new attempt can move.
type runContext struct {
	context.Context
	run *Run
}

// Deadline returns the deadline of the newest attempt.
func (c runContext) Deadline() (time.Time, bool) {
	c.run.mu.Lock()
	defer c.run.mu.Unlock()
	return c.run.deadline, true
}

func (r *Run) setDeadline(deadline time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deadline = deadline
	if r.timer != nil {
		r.timer.Stop()
	}
	left := time.Until(deadline)
	if left <= 0 {
		r.cancel(context.DeadlineExceeded) // at once: a timer would let the run begin
	}
	r.timer = time.AfterFunc(left, func() { r.cancel(context.DeadlineExceeded) })
}

// extend takes over the token and the deadline of a higher attempt.
func (r *Run) extend(d contract.Dispatch) {
	r.client.SetPlatform(d.Platform)
	r.setDeadline(d.Deadline)
}

// execute runs one operation to its end.
func (e *Engine) execute(ctx runContext, run *Run) {
	defer close(run.done)
	defer run.release()
	select {
	case e.slots <- struct{}{}:
		defer func() { <-e.slots }()
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		e.endWaiting(ctx, run)
		return
	}
	reports, stopReports := context.WithCancel(ctx)
	e.runs.Go(func() { run.report(reports) })
	err := e.call(ctx, run)
	stopReports()
	e.finish(ctx, run, err)
}

// endWaiting ends a run that got no slot before it was canceled or its deadline passed. One that
// ran in an earlier process may have left things behind, so its function is still called.
func (e *Engine) endWaiting(ctx context.Context, run *Run) {
	if interrupted(ctx) {
		return
	}
	run.op.mu.Lock()
	began := run.op.status.State != contract.StateAccepted
	run.op.mu.Unlock()
	err := context.Cause(ctx)
	if began {
		err = e.call(ctx, run)
	}
	e.finish(ctx, run, err)
}

// interrupted reports whether a run was cut off but its operation goes on: after a restart, or with force.
func interrupted(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return errors.Is(cause, api.ErrStopping) || errors.Is(cause, errForced)
}

// release frees the timer and unhooks the run.
func (r *Run) release() {
	r.mu.Lock()
	r.timer.Stop()
	r.mu.Unlock()
	r.cancel(nil)
	r.op.mu.Lock()
	if r.op.run == r {
		r.op.run = nil
	}
	r.op.mu.Unlock()
}

// call runs the author's function and turns a panic into a failure.
func (e *Engine) call(ctx context.Context, run *Run) (err error) {
	defer func() {
		if thrown := recover(); thrown != nil {
			run.log.Error("operation panicked", "panic", thrown, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", thrown)
		}
	}()
	do := e.options.Find(run.dispatch.Instance.App, run.dispatch.Kind)
	if do == nil {
		return contract.Fail(contract.CodeUnsupported, contract.OwnerAdapter, false,
			"this build does not support %s of %s", run.dispatch.Kind, run.dispatch.Instance.App)
	}
	if err := run.update(true, func(s *contract.Status) { s.State = contract.StateRunning }); err != nil {
		return err
	}
	run.log.Info("operation running", "attempt", run.dispatch.Attempt)
	return do(ctx, run)
}

// finish writes the terminal status. Success counts even when a cancel came in the meantime: the
// function decided that it was done. A run that is only interrupted has no end to write.
func (e *Engine) finish(ctx context.Context, run *Run, err error) {
	cause := context.Cause(ctx)
	if interrupted(ctx) {
		return
	}
	change := func(s *contract.Status) { s.State, s.Percent, s.Phase = contract.StateSucceeded, 100, "done" }
	switch {
	case err == nil:
	case errors.Is(cause, contract.ErrCanceled):
		change = func(s *contract.Status) {
			s.State = contract.StateCanceled
			s.Error = &contract.OperationError{Code: contract.CodeCanceled, Message: "canceled on request",
				Owner: contract.OwnerUser}
		}
	default:
		failure := operationError(deadlineFirst(cause, err))
		change = func(s *contract.Status) {
			s.State, s.Error, s.Message = contract.StateFailed, failure, failure.Message
		}
	}
	if !e.end(run, func(s *contract.Status) {
		change(s)
		s.WaitsFor = nil
	}) {
		return
	}
	e.settle(run.op)
	run.log.Info("operation ended", "error", err)
}

// end journals and publishes the end of a run, and reports whether it did. A journal that does not take it, being on a
// full disk for one, is tried until it does: otherwise an operation that is done would be open until the next start.
// When the engine stops before that, the next start resumes the operation.
func (e *Engine) end(run *Run, change func(*contract.Status)) bool {
	for tried := 0; ; tried++ {
		err := run.end(change)
		if err == nil || errors.Is(err, errForced) {
			return err == nil
		}
		if tried == 0 {
			run.log.Error("end of operation not journalled; trying again until it is", "error", err)
		}
		if wire.Pause(e.ctx, endPause) != nil {
			return false
		}
	}
}

// deadlineFirst names the deadline as the reason when it is why the function returned a plain error.
func deadlineFirst(cause, err error) error {
	var own contract.OperationError
	if errors.Is(cause, context.DeadlineExceeded) && !errors.As(err, &own) {
		return context.DeadlineExceeded
	}
	return err
}

// errForced is the cause of a run's context when the operation was dispatched again with force: a new
// run replaces this one, which therefore neither undoes nor ends anything.
var errForced = errors.New("the operation starts again with force")

// operationError turns what an operation function returned into what the platform reads. Text
// of unexpected errors stays in the log: it may hold addresses or file names of the adapter.
func operationError(err error) *contract.OperationError {
	var own contract.OperationError
	var body contract.ErrorBody
	switch {
	case errors.As(err, &own):
		own.Message = wire.Clip(own.Message, contract.MaxMessage)
		return &own
	case errors.As(err, &body):
		return &contract.OperationError{Code: body.Code, Message: wire.Clip(body.Message, contract.MaxMessage),
			Owner: contract.OwnerAdapter, Retryable: body.Retryable}
	case errors.Is(err, syscall.ENOSPC):
		return &contract.OperationError{Code: contract.CodeInternal, Message: "the disk of the adapter's state is full",
			Owner: contract.OwnerAdapter, Retryable: true}
	case errors.Is(err, context.DeadlineExceeded):
		return &contract.OperationError{Code: contract.CodeDeadline,
			Message: "the deadline passed before the operation ended", Owner: contract.OwnerAdapter, Retryable: true}
	}
	return &contract.OperationError{Code: contract.CodeInternal, Message: "the adapter had an internal error",
		Owner: contract.OwnerAdapter, Retryable: true}
}
