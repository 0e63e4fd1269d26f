package allocation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dballocation "github.com/gpuaas/app-platform/ent/generated/db/allocation"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/tariff"
)

// Plan is what a release would do.
type Plan struct {
	Hash       string
	Allocation *db.Allocation
	// InstanceID is the instance that would be torn down first; nil when none uses the allocation.
	InstanceID *ids.ID
	Allowed    bool
	// Code is what it would be refused with; nil when it would be accepted.
	Code    *string
	Reasons []*fault.Reason
	Cost    *tariff.Cost
}

// errPlanned ends the transaction of a plan, so that what was done to find out is taken back.
var errPlanned = errors.New("only a plan")

// PlanRelease shows what Release would do: it is done and taken back. It requires the same keys and writes nothing.
//
// Faults: NOT_FOUND, FORBIDDEN. That the release would be refused is in the plan.
func (s *Service) PlanRelease(ctx context.Context, id ids.ID) (*Plan, error) {
	var out *Plan
	err := s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) (err error) {
		r := &releasing{action: "planReleaseAllocation", in: ReleaseInput{AllocationID: id},
			made: made{Allocation: id, Operation: ids.New(ids.Operation), Decommission: ids.New(ids.Operation)}}
		if err := r.lock(ctx, t); err != nil {
			return err
		}
		if out, err = r.plan(ctx, t); err != nil {
			return err
		}
		if err := out.refused(r.possible(ctx, t)); err != nil {
			return err
		}
		return errPlanned
	})
	if errors.Is(err, errMoved) {
		return nil, fault.New(fault.Conflict, "allocation %s is moving to another instance; try again",
			id).At("allocationId")
	}
	if !errors.Is(err, errPlanned) {
		return nil, err
	}
	return out, nil
}

// possible releases the allocation; the caller takes it back.
func (r *releasing) possible(ctx context.Context, t *tx.Tx) error {
	op, err := r.known(ctx, t, false)
	if err == nil && op == nil {
		_, err = r.write(ctx, t)
	}
	return err
}

// refused notes why a release would be refused; it returns an error that is not a refusal.
func (p *Plan) refused(err error) error {
	p.Allowed = err == nil
	refusal, ok := fault.As(err)
	if err != nil && (!ok || refusal.Code == fault.Internal) {
		return err
	}
	if err != nil {
		code := string(refusal.Code)
		p.Code = &code
		if len(refusal.Reasons) == 0 {
			p.Reasons = append(p.Reasons, &fault.Reason{Code: refusal.Code, Message: refusal.Message})
		}
		for i := range refusal.Reasons {
			p.Reasons = append(p.Reasons, &refusal.Reasons[i])
		}
	}
	return nil
}

// plan returns what a release rests on and what it makes of the price of an hour, with the hash of both.
func (r *releasing) plan(ctx context.Context, t *tx.Tx) (*Plan, error) {
	seen := *r.allocation
	out := &Plan{Allocation: &seen, Reasons: []*fault.Reason{}}
	items := []tariff.Item{{Capacity: kind(&seen), Effect: tariff.Released}}
	basis := struct {
		Allocation ids.ID
		Status     lifecycle.AllocationStatus
		Instance   ids.ID
		State      lifecycle.InstanceStatus
		Cost       *tariff.Cost
	}{Allocation: seen.ID, Status: seen.Status}
	if r.instance != nil && r.instance.ReleasedAt == nil {
		out.InstanceID = &r.instance.ID
		basis.Instance, basis.State = r.instance.ID, r.instance.Status
		others, err := t.Allocation.Query().Where(dballocation.InstanceID(r.instance.ID),
			dballocation.IDNEQ(seen.ID)).All(ctx)
		if err != nil {
			return nil, fmt.Errorf("load the allocations of %s: %w", r.instance.ID, err)
		}
		for _, other := range others {
			items = append(items, tariff.Item{Capacity: kind(other), Effect: tariff.Left})
		}
	}
	var err error
	if out.Cost, err = tariff.Reckon(ctx, t, tariff.Payer{TenantID: seen.TenantID, ProjectID: seen.ProjectID}, items,
		nil); err != nil {
		return nil, err
	}
	basis.Cost = out.Cost
	encoded, err := json.Marshal(basis)
	sum := sha256.Sum256(encoded)
	out.Hash = hex.EncodeToString(sum[:])
	return out, err
}

func kind(row *db.Allocation) tariff.Capacity {
	return tariff.Kind(row.Shape, row.GpuCount, row.Sku, row.Region)
}

// asPlanned refuses a release that is not what its plan showed: PLAN_STALE.
func (r *releasing) asPlanned(ctx context.Context, t *tx.Tx) error {
	if r.in.PlanHash == "" {
		return nil
	}
	now, err := r.plan(ctx, t)
	if err == nil && now.Hash != r.in.PlanHash {
		err = fault.New(fault.PlanStale,
			"what the plan was computed from has changed: plan again").At("input.planHash")
	}
	return err
}
