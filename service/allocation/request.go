package allocation

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/isolation"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/policy"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dballocation "github.com/gpuaas/app-platform/ent/generated/db/allocation"
	dbproject "github.com/gpuaas/app-platform/ent/generated/db/project"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/capacity"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/kit/idem"
	"github.com/gpuaas/app-platform/service/kit/overlay"
	"github.com/gpuaas/app-platform/service/kit/spend"
	"github.com/gpuaas/app-platform/service/ledger/audit"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

// RequestInput is the capacity that is requested.
type RequestInput struct {
	ProjectID           ids.ID
	Shape               lifecycle.CapacityShape
	Count               int
	GPUCount            *int   // for GPU_SLICE only
	SKU, Region         string // empty for any
	Name                string
	SchedulerType       string
	IntegrationMetadata json.RawMessage
	IdempotencyKey      string
	// IsolationClass is the weakest of its members, and MemberProfile one that its node offers; empty for any.
	IsolationClass isolation.Class   `json:",omitempty"`
	MemberProfile  isolation.Profile `json:",omitempty"`
}

// Request rents capacity: all that is requested or nothing. Key: allocation.create on the project.
//
// Faults: INVALID_ARGUMENT, NOT_FOUND, FORBIDDEN, CAPACITY_EXHAUSTED when no node fits, ISOLATION_UNAVAILABLE at
// input.isolationClass when no node offers that isolation, LIMIT_EXCEEDED at input.count when the project's quota does
// not allow as many GPUs, POLICY_DENIED at input.region, input.sku or input.count (GPUs, spending), BUDGET_EXCEEDED at
// input.count, IDEMPOTENCY_KEY_REUSED.
func (s *Service) Request(ctx context.Context, in RequestInput) ([]*db.Allocation, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	var out []*db.Allocation
	err := s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		project, err := authorise(ctx, t, in.ProjectID)
		if err != nil {
			return err
		}
		made := make([]ids.ID, in.Count)
		for i := range made {
			made[i] = ids.New(ids.Allocation)
		}
		repeated, err := idem.Claim(ctx, t, idem.Key{
			Verb: "requestAllocation", TenantID: project.TenantID, ProjectID: project.ID,
			Value: in.IdempotencyKey, Input: in,
		}, &made)
		if err != nil {
			return err
		}
		if repeated {
			out, err = t.Allocation.Query().Where(dballocation.IDIn(made...)).
				Order(db.Asc(dballocation.FieldID)).All(ctx)
			return err
		}
		out, err = in.write(ctx, t, project, made)
		where := authz.Object{TenantID: project.TenantID, ProjectID: project.ID}
		return audit.RefusedByPolicy(t, "requestAllocation", authz.AllocationCreate, where, project.ID, err)
	})
	return out, err
}

func (in *RequestInput) want() *capacity.Want {
	return &capacity.Want{Shape: in.Shape, GPUCount: in.GPUCount, SKU: in.SKU, Region: in.Region,
		Class: in.IsolationClass, Profile: in.MemberProfile}
}

// check refuses input that is wrong by itself.
func (in *RequestInput) check() error {
	wrong := &check.Input{}
	if in.Count < 1 || in.Count > capacity.MaxCount {
		wrong.Bad("input.count", "must be 1 to %d", capacity.MaxCount)
	}
	in.want().Check(wrong, "input")
	capacity.CheckName(wrong, "input.schedulerType", in.SchedulerType)
	wrong.Text("input.name", in.Name, 0, 80)
	if len(in.IntegrationMetadata) > maxMetadata || strings.Contains(string(in.IntegrationMetadata), `\u0000`) {
		wrong.Bad("input.integrationMetadata", "must be at most %d bytes, without NUL characters", maxMetadata)
	}
	return wrong.Err()
}

// authorise loads the project and requires the key.
func authorise(ctx context.Context, t *tx.Tx, id ids.ID) (*db.Project, error) {
	const action = "requestAllocation"
	project, err := t.Project.Query().Where(dbproject.ID(id)).Only(ctx)
	if db.IsNotFound(err) {
		return nil, audit.Missing(t, action, authz.AllocationCreate, id)
	}
	if err != nil {
		return nil, fmt.Errorf("load project %s: %w", id, err)
	}
	return project, audit.Require(t, action, authz.AllocationCreate,
		authz.Object{TenantID: project.TenantID, ProjectID: project.ID}, id)
}

// write binds each allocation to a node and stores it, within the project's quota.
func (in *RequestInput) write(ctx context.Context, t *tx.Tx, seen *db.Project, made []ids.ID) ([]*db.Allocation,
	error) {
	rules, err := overlay.Load(ctx, t, seen.TenantID, seen.ID)
	if err != nil {
		return nil, err
	}
	if err := in.want().Permitted(rules, "input"); err != nil {
		return nil, err
	}
	project, err := capacity.Hold(ctx, t, seen, rules.Counts())
	if err != nil {
		return nil, err
	}
	out := make([]*db.Allocation, len(made))
	for i, id := range made {
		out[i], err = capacity.Place(ctx, t, capacity.Draft{
			ID: id, Project: project, Want: *in.want(), Policy: rules, Name: in.name(i),
			SchedulerType: in.SchedulerType,
			Metadata:      in.IntegrationMetadata,
		})
		if refused := capacity.Exhausted(err, i+1, in.Count, "input"); refused != nil {
			return nil, refused
		}
		if fault.Is(err, fault.ClassUnavailable) {
			return nil, fault.From(err).At("input.isolationClass")
		}
		if err != nil {
			return nil, err
		}
	}
	if err := capacity.GPUs(ctx, t, project, "input.count"); err != nil {
		return nil, err
	}
	if err := affordable(ctx, t, rules, project.ID); err != nil {
		return nil, err
	}
	ask := spend.Ask{TenantID: project.TenantID, ProjectID: project.ID, Lock: true, Path: "input.count"}
	if err := spend.Admit(ctx, t, ask); err != nil {
		return nil, err
	}
	if err := tell(t, out); err != nil {
		return nil, err
	}
	return out, audit.Write(ctx, t, audit.Entry{
		Action: "requestAllocation", Key: authz.AllocationCreate, ObjectID: project.ID,
		Object: authz.Object{TenantID: project.TenantID, ProjectID: project.ID},
		After: map[string]any{"allocations": made, "shape": in.Shape, "gpuCount": out[0].GpuCount, "sku": in.SKU,
			"region": in.Region},
	})
}

// tell reports to the project's feed the allocations that were requested and bound to a node.
func tell(t *tx.Tx, made []*db.Allocation) error {
	for _, row := range made {
		of := map[string]any{"shape": row.Shape, "gpuCount": row.GpuCount, "sku": row.Sku, "region": row.Region}
		err := event.AppendFree(t, row,
			event.Draft{Type: lifecycle.EventAllocationRequested, Message: "allocation " + row.Name + " requested",
				Payload: of},
			event.Draft{Type: lifecycle.EventAllocationReady, Message: "allocation " + row.Name + " is ready",
				Payload: of})
		if err != nil {
			return err
		}
	}
	return nil
}

// affordable checks what the project rents, with what was just placed, against the ceilings of policy.
func affordable(ctx context.Context, t *tx.Tx, rules *policy.Effective, projectID ids.ID) error {
	if !rules.Counts() {
		return nil
	}
	usage, err := overlay.Count(ctx, t, projectID, "", false)
	if err != nil {
		return err
	}
	return policy.Join(rules.GPUs(usage.GPUs, "input.count"), rules.HourlyCost(usage.Spending, "input.count"))
}

// name returns the name of one allocation, numbered when several are requested; empty for one derived from the id.
func (in *RequestInput) name(index int) string {
	if in.Name == "" || in.Count == 1 {
		return in.Name
	}
	return fmt.Sprintf("%s-%d", in.Name, index+1)
}
