package engine

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// Canceled reports whether a failure is really a stop on request.
func Canceled(failure operation.Failure) bool { return failure.Code == string(fault.Canceled) }

// cancel asks the adapter for the requested stop. Canceled ends the operation; too late goes on with it;
// while the outcome is unknown, the operation is carried on as before and the adapter is asked again.
func (c *Context) cancel(ctx context.Context) (over bool, err error) {
	answer, err := c.ask(ctx)
	switch {
	case err != nil && ctx.Err() == nil && !c.Now().Before(c.due()):
		c.asked = true // and has no answer; the deadline ends it
		return false, nil
	case err != nil:
		return true, err
	}
	switch answer.Outcome {
	case adapter.CancelDone:
		c.asked, c.verdict = false, answer.Message
		return true, c.fail(ctx, c.stopped())
	case adapter.CancelTooLate:
		c.asked = false
		return false, c.resume(ctx, answer.Message)
	}
	c.asked = true
	if answer.Message != c.Op.CancelMessage {
		c.verdict = answer.Message
	}
	return false, nil
}

func (c *Context) ask(ctx context.Context) (Answer, error) {
	switch {
	case c.Op.DispatchAttempt == 0:
		return Answer{Outcome: adapter.CancelDone, Message: "it was never sent to the adapter"}, nil
	case c.kind.Cancel == nil:
		return Answer{Outcome: adapter.CancelTooLate, Message: "it cannot be stopped"}, nil
	}
	bounded, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	return c.kind.Cancel(bounded, c)
}

// stopped is why a canceled operation ended.
func (c *Context) stopped() operation.Failure {
	message := "canceled"
	if c.Op.CancelRequester != "" {
		message += " by " + c.Op.CancelRequester
	}
	if c.Op.CancelReason != "" {
		message += ": " + c.Op.CancelReason
	}
	return operation.Failure{Code: string(fault.Canceled), Owner: operation.OwnerUser, Message: message,
		Retryable: true}.Clipped()
}

// unlessStopped returns a step's failure, or, when a stop was requested and that is why the operation ended,
// that it was stopped.
func (c *Context) unlessStopped(ctx context.Context, failure operation.Failure) operation.Failure {
	if c.Op.State != lifecycle.OperationCanceling {
		return failure
	}
	answer, err := c.ask(ctx)
	if err != nil || answer.Outcome != adapter.CancelDone {
		return failure
	}
	c.verdict = answer.Message
	return c.stopped()
}

// resume goes on with an operation that it is too late to stop.
func (c *Context) resume(ctx context.Context, why string) error {
	err := c.Write(ctx, func(ctx context.Context, t *tx.Tx, locked *Locked) error {
		if locked.Op.State != lifecycle.OperationCanceling {
			return nil
		}
		if _, err := t.Exec(ctx, `UPDATE operation SET state = 'RUNNING', cancel_message = $2
			WHERE id = $1`, locked.Op.ID, why); err != nil {
			return fmt.Errorf("resume %s: %w", locked.Op.ID, err)
		}
		locked.Op.State, locked.Op.CancelMessage = lifecycle.OperationRunning, why
		locked.Emit(event.Draft{Type: lifecycle.EventOperationStarted, Message: "it is too late to cancel: " + why,
			Payload: map[string]any{"kind": locked.Op.Kind, "resumed": true}})
		t.Wake(event.OperationTopic(locked.Op.ID))
		return nil
	})
	if err == nil {
		c.Log.Info("too late to cancel", "message", why)
	}
	return err
}
