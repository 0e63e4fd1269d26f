// Package retry repeats what an operation did not achieve: it calls the verb of the operation's kind again with the
// input of that operation, so that every rule is evaluated again.
package retry

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dboperation "github.com/gpuaas/app-platform/ent/generated/db/operation"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/change"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/ledger/audit"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// Verb calls the verb of a kind again.
type Verb func(ctx context.Context, kind lifecycle.OperationKind, again change.Again) (*operation.View, error)

// Planner shows what calling the verb of a kind again would do.
type Planner func(ctx context.Context, kind lifecycle.OperationKind, again change.Again) (*change.Plan, error)

// Service holds what the verb needs.
type Service struct {
	// DB is the database.
	DB *tx.DB
	// Members calls the verbs on members, and Instances those on instances.
	Members, Instances Verb
	// PlanMembers and PlanInstances show what these would do.
	PlanMembers, PlanInstances Planner
}

// Input names the operation to retry.
type Input struct {
	OperationID     ids.ID
	DeadlineSeconds *int // nil for as long as the first time
	PlanHash        string
	Reason          string
	IdempotencyKey  string
}

// Retry accepts another operation of the same kind for the same change, after every rule was evaluated again. It
// requires operation.retry and the kind's own key.
//
// Faults: INVALID_ARGUMENT, NOT_FOUND, FORBIDDEN, FAILED_PRECONDITION at input.operationId when the operation has not
// ended, has succeeded, was superseded, or is of a kind that is not retried; and those of the kind's verb, PLAN_STALE
// among them.
func (s *Service) Retry(ctx context.Context, in Input) (*operation.View, error) {
	wrong := &check.Input{}
	wrong.Reason("input.reason", in.Reason)
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	op, err := s.find(ctx, in)
	if err != nil {
		return nil, err
	}
	verb, _, err := s.verb(op.Kind)
	if err != nil {
		return nil, err
	}
	return verb(ctx, op.Kind, in.again(op))
}

// Plan shows what a retry would do, with the same keys, and writes nothing. Its faults are those of Retry that are
// about the operation; that a rule would refuse the change is in the plan's verdicts.
func (s *Service) Plan(ctx context.Context, in Input) (*change.Plan, error) {
	op, err := s.find(ctx, in)
	if err != nil {
		return nil, err
	}
	_, plan, err := s.verb(op.Kind)
	if err != nil {
		return nil, err
	}
	return plan(ctx, op.Kind, in.again(op))
}

// again is how the verb of an operation's kind is called.
func (in Input) again(op *db.Operation) change.Again {
	return change.Again{
		RetryOf: op.ID, Input: operation.PrivateOf(op).Input, DeadlineSeconds: in.DeadlineSeconds, Reason: in.Reason,
		PlanHash: in.PlanHash, IdempotencyKey: in.IdempotencyKey,
	}
}

// find loads the operation and requires the key. An ended operation does not change, so no lock is needed.
func (s *Service) find(ctx context.Context, in Input) (*db.Operation, error) {
	const action = "retryOperation"
	var op *db.Operation
	err := s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) (err error) {
		op, err = t.Operation.Query().Where(dboperation.ID(in.OperationID)).Only(ctx)
		if db.IsNotFound(err) {
			return audit.Missing(t, action, authz.OperationRetry, in.OperationID)
		}
		if err != nil {
			return fmt.Errorf("load operation %s: %w", in.OperationID, err)
		}
		return audit.Require(t, action, authz.OperationRetry, objectOf(op), op.ID)
	})
	if err != nil {
		return nil, err
	}
	return op, retryable(op)
}

func objectOf(op *db.Operation) authz.Object {
	object := authz.Object{TenantID: op.TenantID, ProjectID: op.ProjectID}
	if op.InstanceID != nil {
		object.InstanceID = *op.InstanceID
	}
	return object
}

func retryable(op *db.Operation) error {
	switch {
	case op.EndedAt == nil:
		return fault.New(fault.FailedPrecondition, "the operation is %s: wait for its end, or cancel it",
			op.State).At("input.operationId")
	case op.State == lifecycle.OperationSucceeded:
		return fault.New(fault.FailedPrecondition,
			"the operation has succeeded: there is nothing to try again").At("input.operationId")
	case op.ErrorCode == operation.Superseded:
		return fault.New(fault.FailedPrecondition,
			"the operation was superseded, and the operation that replaced it continues").At("input.operationId")
	}
	return nil
}

// instead states the remedy for kinds that are not retried.
var instead = map[lifecycle.OperationKind]string{
	lifecycle.InstanceCreate:    "a launch cannot be retried: decommission the instance and launch it again",
	lifecycle.AllocationRelease: "a release cannot be retried: request the release of the allocation again",
}

func (s *Service) verb(kind lifecycle.OperationKind) (Verb, Planner, error) {
	if say, none := instead[kind]; none {
		return nil, nil, fault.New(fault.FailedPrecondition, "%s", say).At("input.operationId")
	}
	if kind.Effects().Scope == lifecycle.ScopeInstance {
		return s.Instances, s.PlanInstances, nil
	}
	return s.Members, s.PlanMembers, nil
}
