package ending

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// Refused is the error code of an operation that was ended with no more than its end, since the database had refused
// for good what its kind writes at its end.
const Refused = "END_REFUSED"

// Bare ends the operation with as much of its end as the database takes: the end itself, as FAILED or, where the
// database takes no such row, as CANCELED; and each other part by itself, so that one that is refused costs no other.
// It writes to the timeline, and returns the parts that were left out. An error is one of the end itself, or of the
// connection: nothing is written then.
func (e *Ending) Bare(ctx context.Context) (left []string, err error) {
	if err := e.bareEnd(ctx); err != nil {
		return nil, err
	}
	for _, one := range e.parts() {
		refused, err := e.apart(ctx, one.do)
		if err != nil {
			return nil, err
		}
		if refused != nil {
			left = append(left, one.name)
			e.forget(one.name)
		}
	}
	if e.Instance != nil {
		refused, err := e.apart(ctx, func(ctx context.Context) error {
			return event.Append(ctx, e.Tx, e.Instance, e.Events()...)
		})
		if err != nil {
			return nil, err
		}
		if refused != nil {
			left = append(left, "events")
		}
	}
	e.Wake(event.QueueTopic, event.OperationTopic(e.Op.ID), event.WordTopic(e.Op.ID))
	return left, nil
}

// bareEnd ends the operation itself.
func (e *Ending) bareEnd(ctx context.Context) error {
	e.as = lifecycle.OperationFailed
	refused, err := e.apart(ctx, func(ctx context.Context) error {
		if err := e.fence(ctx); err != nil {
			return err
		}
		return operation.Fail(ctx, e.Tx, e.Op, e.Failure)
	})
	if err != nil || refused == nil {
		return err
	}
	e.as = lifecycle.OperationCanceled
	again, err := e.apart(ctx, e.cancel)
	if err != nil {
		return err
	}
	if again != nil {
		return fmt.Errorf("it can be ended neither as FAILED (%w) nor as CANCELED: %w", refused, again)
	}
	return nil
}

// cancel ends the operation as CANCELED, by legal moves.
func (e *Ending) cancel(ctx context.Context) error {
	if err := e.fence(ctx); err != nil {
		return err
	}
	_, err := e.Exec(ctx, `UPDATE operation SET state = 'CANCELING' WHERE id = $1 AND state = 'RUNNING'`, e.Op.ID)
	if err != nil {
		return fmt.Errorf("cancel %s: %w", e.Op.ID, err)
	}
	return operation.Canceled(ctx, e.Tx, e.Op, e.Failure)
}

// forget drops what a part that was taken back had noted.
func (e *Ending) forget(name string) {
	switch name {
	case "members":
		e.Failed = nil
	case "instance":
		e.lost = false
	case "orphans":
		e.told, e.Orphans = nil, 0
	}
}

// apart runs a part in a savepoint of its own. What the database refuses for good, also at the commit, is taken back
// and returned as refused; any other error ends the transaction.
func (e *Ending) apart(ctx context.Context, do func(context.Context) error) (refused, err error) {
	if _, err := e.Exec(ctx, `SAVEPOINT part`); err != nil {
		return nil, err
	}
	for _, run := range []func(context.Context) error{do, e.Flush, e.check} {
		if refused = run(ctx); refused != nil {
			break
		}
	}
	switch _, lasting := tx.Refusal(refused); {
	case refused == nil:
		_, err = e.Exec(ctx, `RELEASE SAVEPOINT part`)
	case lasting:
		e.Last().QueuedQueries = nil // what the part had left for the commit
		_, err = e.Exec(ctx, `ROLLBACK TO SAVEPOINT part`)
	default:
		return nil, refused
	}
	return refused, err
}

// check lets constraints speak that would otherwise wait for the commit.
func (e *Ending) check(ctx context.Context) error {
	if _, err := e.Exec(ctx, `SET CONSTRAINTS ALL IMMEDIATE`); err != nil {
		return err
	}
	_, err := e.Exec(ctx, `SET CONSTRAINTS ALL DEFERRED`)
	return err
}
