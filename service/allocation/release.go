package allocation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dballocation "github.com/gpuaas/app-platform/ent/generated/db/allocation"
	dbinstance "github.com/gpuaas/app-platform/ent/generated/db/instance"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/kit/idem"
	"github.com/gpuaas/app-platform/service/kit/impact"
	"github.com/gpuaas/app-platform/service/ledger/audit"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

const (
	// teardownSeconds is how long the decommissioning of an instance that a release begins may take.
	teardownSeconds = 900
	// releaseSeconds is how long a release may take after that.
	releaseSeconds = 900
	// maxMoves bounds how often a release begins again because another instance took the allocation.
	maxMoves = 3
)

// ReleaseInput names the allocation that is given back.
type ReleaseInput struct {
	AllocationID   ids.ID
	PlanHash       string `json:",omitempty"`
	Reason         string
	IdempotencyKey string
}

// Released is a release under way.
type Released struct {
	Allocation *db.Allocation
	Operation  *operation.View
}

// Release gives capacity back. An instance that uses it is decommissioned first, in the same transaction; the release
// ends after that, with proof that nothing is left on the node. Keys: allocation.release, and <family>.instance.delete
// when an instance uses it.
//
// Faults: INVALID_ARGUMENT, NOT_FOUND, FORBIDDEN, FAILED_PRECONDITION when it is released, CONFLICT
// naming the operation in the way, PLAN_STALE at input.planHash, IDEMPOTENCY_KEY_REUSED.
func (s *Service) Release(ctx context.Context, in ReleaseInput) (*Released, error) {
	wrong := &check.Input{}
	wrong.Reason("input.reason", in.Reason)
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	return s.again(ctx, in, s.DB.Write)
}

// ReleaseAs is Release for what the platform gives back by itself, as actor: without an idempotency key, since one
// process at a time does so and the locked allocation shows it what there is.
func (s *Service) ReleaseAs(ctx context.Context, actor *authz.Actor, in ReleaseInput) (*Released, error) {
	return s.again(ctx, in, func(ctx context.Context, do func(context.Context, *tx.Tx) error) error {
		return s.DB.As(ctx, actor, do)
	})
}

// write runs a verb in a transaction of its own.
type write func(ctx context.Context, do func(context.Context, *tx.Tx) error) error

// again runs the release, and begins again when another instance has taken the allocation meanwhile.
func (s *Service) again(ctx context.Context, in ReleaseInput, run write) (*Released, error) {
	for range maxMoves {
		out, err := release(ctx, in, run)
		if !errors.Is(err, errMoved) {
			return out, err
		}
	}
	return nil, fault.New(fault.Conflict, "allocation %s is moving to another instance; try again",
		in.AllocationID).At("input.allocationId")
}

// errMoved reports that another instance uses the allocation than when it was first read: locks are taken instance
// first, so the release has to begin again.
var errMoved = errors.New("the allocation moved to another instance")

// releasing is one release: what it has locked and what it makes.
type releasing struct {
	action     string // of the audit
	in         ReleaseInput
	made       made
	instance   *db.Instance // nil when none uses it
	allocation *db.Allocation
}

// made is what an idempotency key stores of a release.
type made struct{ Allocation, Operation, Decommission ids.ID }

func release(ctx context.Context, in ReleaseInput, run write) (*Released, error) {
	var out *Released
	err := run(ctx, func(ctx context.Context, t *tx.Tx) error {
		r := &releasing{action: "releaseAllocation", in: in,
			made: made{Allocation: in.AllocationID, Operation: ids.New(ids.Operation),
				Decommission: ids.New(ids.Operation)}}
		if err := r.lock(ctx, t); err != nil {
			return err
		}
		repeated, err := r.claim(ctx, t)
		if err != nil {
			return err
		}
		op, err := r.known(ctx, t, repeated)
		if err == nil && op == nil {
			if err = r.asPlanned(ctx, t); err == nil {
				op, err = r.write(ctx, t)
			}
		}
		if err != nil {
			return err
		}
		out = &Released{Allocation: r.allocation, Operation: &operation.View{Operation: op}}
		return nil
	})
	return out, err
}

// claim claims the idempotency key; true when it was used before, with what that use created. The platform has no keys.
func (r *releasing) claim(ctx context.Context, t *tx.Tx) (bool, error) {
	if t.Actor.Kind == authz.KindSystem {
		return false, nil
	}
	return idem.Claim(ctx, t, idem.Key{
		Verb: "releaseAllocation", TenantID: r.allocation.TenantID, ProjectID: r.allocation.ProjectID,
		Value: r.in.IdempotencyKey, Input: r.in,
	}, &r.made)
}

// lock finds the instance that uses the allocation, locks it first, as everywhere, then the allocation, and requires
// the permission keys.
func (r *releasing) lock(ctx context.Context, t *tx.Tx) error {
	action, id := r.action, r.in.AllocationID
	seen, err := t.Allocation.Query().Where(dballocation.ID(id)).Only(ctx)
	if db.IsNotFound(err) {
		return audit.Missing(t, action, authz.AllocationRelease, id)
	}
	if err != nil {
		return fmt.Errorf("load allocation %s: %w", id, err)
	}
	if err := audit.Require(t, action, authz.AllocationRelease, object(seen), id); err != nil {
		return err
	}
	if seen.InstanceID != nil {
		r.instance, err = t.Instance.Query().Where(dbinstance.ID(*seen.InstanceID)).ForUpdate().Only(ctx)
		if err != nil {
			return fmt.Errorf("lock instance %s: %w", *seen.InstanceID, err)
		}
		if err := r.mayStop(t, action, object(seen)); err != nil {
			return err
		}
	}
	r.allocation, err = t.Allocation.Query().Where(dballocation.ID(id)).ForUpdate().Only(ctx)
	if err != nil {
		return fmt.Errorf("lock allocation %s: %w", id, err)
	}
	if object(r.allocation) != object(seen) {
		return errMoved
	}
	return nil
}

// mayStop requires the key to decommission the instance, unless nothing is left of it.
func (r *releasing) mayStop(t *tx.Tx, action string, where authz.Object) error {
	if r.instance.ReleasedAt != nil {
		return nil
	}
	key, err := authz.FamilyKey(r.instance.PermissionFamily, "instance.delete")
	if err != nil {
		return err
	}
	return audit.Require(t, action, key, where, r.instance.ID)
}

// known is the operation of a repeated call, or the refusal when another release is under way. It is nil when there is
// neither: also after a release that failed, which can be requested again.
func (r *releasing) known(ctx context.Context, t *tx.Tx, repeated bool) (*db.Operation, error) {
	id := r.made.Operation
	if !repeated {
		if r.allocation.Status != lifecycle.AllocationReleasing || r.allocation.ReleaseOperationID == nil {
			return nil, nil
		}
		id = *r.allocation.ReleaseOperationID
	}
	op, err := t.Operation.Get(ctx, id)
	switch {
	case err != nil:
		return nil, fmt.Errorf("load operation %s: %w", id, err)
	case repeated:
		return op, nil
	case op.EndedAt == nil:
		return nil, operation.InTheWay(op)
	}
	return nil, nil
}

// write accepts the release, and the decommissioning it needs.
func (r *releasing) write(ctx context.Context, t *tx.Tx) (*db.Operation, error) {
	before := r.allocation.Status
	if before != lifecycle.AllocationReleasing {
		if err := before.CanMove(lifecycle.AllocationReleasing); err != nil {
			return nil, err
		}
	}
	decommission, err := r.decommission(ctx, t)
	if err != nil {
		return nil, err
	}
	op, err := operation.Create(ctx, t, r.draft(t, decommission))
	if err != nil {
		return nil, err
	}
	_, err = t.Exec(ctx, `UPDATE allocation SET status = $2, release_operation_id = $3 WHERE id = $1`,
		r.allocation.ID, lifecycle.AllocationReleasing, op.ID)
	if err != nil {
		return nil, fmt.Errorf("release allocation %s: %w", r.allocation.ID, err)
	}
	r.allocation.Status, r.allocation.ReleaseOperationID = lifecycle.AllocationReleasing, &op.ID
	return op, r.announce(ctx, t, op, decommission, before)
}

// decommission is the operation that tears the instance down: the one under way, or a new one. It is
// nil when no instance uses the allocation, or nothing is left of it.
func (r *releasing) decommission(ctx context.Context, t *tx.Tx) (*db.Operation, error) {
	if r.instance == nil || r.instance.ReleasedAt != nil {
		return nil, nil
	}
	open, err := operation.Open(ctx, t, r.instance.ID)
	if err != nil {
		return nil, err
	}
	if open != nil && open.Kind == lifecycle.InstanceDecommission {
		return open, nil
	}
	if r.instance.Status == lifecycle.InstanceStopped { // by force, or it would be released
		return nil, fault.New(fault.FailedPrecondition, "instance %s has ended, but something of it may be left on a "+
			"node: release the allocation when the instance's orphans are resolved", r.instance.ID).
			At("input.allocationId")
	}
	attached, err := impact.AttachedTo(ctx, t, r.instance)
	if err != nil {
		return nil, err
	}
	if len(attached) > 0 { // a release knows no force: whoever means it decommissions the instance by force first
		return nil, impact.InUse(attached, "input.allocationId")
	}
	return operation.Teardown(ctx, t, r.instance, operation.Draft{
		ID: r.made.Decommission, DeadlineSeconds: teardownSeconds, Reason: r.reason(),
	})
}

func (r *releasing) reason() string {
	if r.in.Reason != "" {
		return r.in.Reason
	}
	return "its allocation " + string(r.allocation.ID) + " is released"
}

// draft is the release's operation; its deadline lies behind that of the decommissioning.
func (r *releasing) draft(t *tx.Tx, decommission *db.Operation) operation.Draft {
	change, deadline := map[string]any{}, releaseSeconds
	if r.instance != nil {
		change["instance"] = r.instance.ID
	}
	if decommission != nil {
		change["decommission"] = decommission.ID
		deadline += max(0, int(decommission.Deadline.Sub(t.Now)/time.Second))
	}
	return operation.Draft{
		ID: r.made.Operation, Kind: lifecycle.AllocationRelease, TenantID: r.allocation.TenantID,
		ProjectID:    r.allocation.ProjectID,
		AllocationID: r.allocation.ID, DeadlineSeconds: deadline, Reason: r.in.Reason, DesiredChange: change,
		CorrelationID: t.Request.CorrelationID,
	}
}

// announce appends events to the instance's timeline, or to the project's feed when no instance uses the allocation. It
// audits the release and the decommissioning that it began.
func (r *releasing) announce(ctx context.Context, t *tx.Tx, op, decommission *db.Operation,
	before lifecycle.AllocationStatus) error {
	after := map[string]any{"status": r.allocation.Status, "operation": op.ID}
	if decommission != nil {
		after["instance"], after["decommission"] = r.instance.ID, decommission.ID
	}
	err := audit.Write(ctx, t, audit.Entry{
		Action: "releaseAllocation", Key: authz.AllocationRelease, Object: object(r.allocation),
		ObjectID: r.allocation.ID,
		Reason:   r.in.Reason, Before: map[string]any{"status": before}, After: after,
	})
	if err != nil {
		return err
	}
	told := event.Draft{
		Type: lifecycle.EventAllocationReleasing, OperationID: op.ID,
		Message:       "allocation " + r.allocation.Name + " is released",
		CorrelationID: op.CorrelationID, Payload: map[string]any{"allocation": r.allocation.ID},
	}
	if decommission == nil {
		return event.AppendFree(t, r.allocation, told)
	}
	err = event.Append(ctx, t, r.instance, told)
	if err != nil || decommission.ID != r.made.Decommission {
		return err
	}
	key, err := authz.FamilyKey(r.instance.PermissionFamily, "instance.delete")
	if err != nil {
		return err
	}
	return audit.Write(ctx, t, audit.Entry{
		Action: "releaseAllocation", Key: key, Object: object(r.allocation), ObjectID: r.instance.ID,
		Reason: r.in.Reason,
		After:  map[string]any{"status": r.instance.Status, "operation": decommission.ID},
	})
}
