// Package engine shows and accepts changes: it leads a request through the steps of package change, asks the adapter,
// and writes the outcome.
package engine

import (
	"context"
	"errors"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/change"
	"github.com/gpuaas/app-platform/service/change/verdict"
	"github.com/gpuaas/app-platform/service/contract"
	"github.com/gpuaas/app-platform/service/kit/idem"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// Engine shows and accepts changes.
type Engine struct {
	// DB is the database.
	DB *tx.DB
	// Calls reach adapters; nil leaves their verdicts unknown.
	Calls *contract.Calls
}

// Accept accepts a change. It evaluates every rule that the plan evaluates, by the same code; the first refusal is the
// answer. With a plan's hash the adapter is called again, and PLAN_STALE reports anything that has moved. A repeat
// under the same idempotency key returns what the first request created.
//
// Faults: INVALID_ARGUMENT, NOT_FOUND, FORBIDDEN, IDEMPOTENCY_KEY_REUSED, PLAN_STALE, and those of the rules:
// FAILED_PRECONDITION, CONFLICT naming the operation in the way, LIMIT_EXCEEDED, INCOMPATIBLE, CONFIG_INVALID,
// CAPACITY_EXHAUSTED, NOT_ENTITLED, POLICY_DENIED, ADAPTER_REJECTED.
func (e *Engine) Accept(ctx context.Context, request *change.Request) (*Outcome, error) {
	if err := request.Check(); err != nil {
		return nil, err
	}
	if err := request.CheckAsked(); err != nil {
		return nil, err
	}
	request, err := e.chosen(ctx, request, request.Action)
	if err != nil {
		return nil, err
	}
	var said *answers
	if request.Asked.PlanHash != "" {
		judged, err := e.preview(ctx, request, request.Action)
		if err != nil {
			return nil, err
		}
		said = &judged.said
	}
	var out *Outcome
	err = again(func() error {
		return e.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) (err error) {
			out, err = accept(ctx, t, request, said)
			return err
		})
	})
	return out, err
}

// maxMoves bounds how often a scaling begins again because others have changed what is wanted meanwhile.
const maxMoves = 3

// again tries a change again when what its kind rests on changed before its locks were taken.
func again(try func() error) error {
	for range maxMoves {
		if err := try(); !errors.Is(err, verdict.ErrMoved) {
			return err
		}
	}
	return fault.New(fault.Conflict, "another request is changing the component's members: try again").At("input.count")
}

// AcceptAs accepts a change that the platform makes by itself, as actor: without a plan, and without an idempotency
// key, since one process at a time makes such changes and the locked instance shows it what there is. Every rule holds
// as for a person, and so do the faults.
func (e *Engine) AcceptAs(ctx context.Context, actor *authz.Actor, request *change.Request) (*Outcome, error) {
	if err := request.Check(); err != nil {
		return nil, err
	}
	if err := request.CheckAsked(); err != nil {
		return nil, err
	}
	var out *Outcome
	err := e.DB.As(ctx, actor, func(ctx context.Context, t *tx.Tx) (err error) {
		out, err = accept(ctx, t, request, nil)
		return err
	})
	return out, err
}

// accept leads a request through every step in one transaction.
func accept(ctx context.Context, t *tx.Tx, request *change.Request, said *answers) (*Outcome, error) {
	subject, err := change.Locate(ctx, t, request, request.Action)
	if err != nil {
		return nil, err
	}
	locked, err := subject.Lock(ctx, t, true)
	if err != nil {
		return nil, err
	}
	minted := subject.Mint()
	repeated, err := claim(ctx, t, locked, &minted)
	if err != nil {
		return nil, err
	}
	if repeated {
		return recall(ctx, t, locked, minted)
	}
	if err := onceAgain(ctx, t, locked); err != nil {
		return nil, err
	}
	return decide(ctx, t, locked, minted, said)
}

// decide evaluates every rule for a locked subject, and commits what none refuses.
func decide(ctx context.Context, t *tx.Tx, locked *change.Locked, minted change.Minted,
	said *answers) (*Outcome, error) {
	facts, err := locked.Load(ctx, t)
	if err != nil {
		return nil, err
	}
	verdicts, err := verdict.Evaluate(ctx, t, facts, minted)
	if err != nil {
		return nil, err
	}
	if err := enforce(verdicts, said); err != nil {
		return nil, refusedByPolicy(t, locked.Subject, err)
	}
	return commit(ctx, t, verdicts, said)
}

// claim claims the idempotency key; true when it was used before, with the ids of that use.
func claim(ctx context.Context, t *tx.Tx, locked *change.Locked, minted *change.Minted) (bool, error) {
	if t.Actor.Kind == authz.KindSystem {
		return false, nil
	}
	return idem.Claim(ctx, t, keyOf(locked), minted)
}

func keyOf(locked *change.Locked) idem.Key {
	return idem.Key{
		Verb: locked.Verb(), TenantID: locked.Instance.TenantID, ProjectID: locked.Instance.ProjectID,
		Value: locked.Asked.IdempotencyKey, Input: locked.Claimed(),
	}
}

// refusedByPolicy audits a refusal by policy or entitlement, and passes every error on.
func refusedByPolicy(t *tx.Tx, subject *change.Subject, err error) error {
	key, unknown := subject.Key()
	if unknown != nil {
		return unknown
	}
	return audit.RefusedByPolicy(t, subject.Verb(), key, subject.Object(), subject.SubjectID(), err)
}
