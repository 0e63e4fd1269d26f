package allocation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dballocation "github.com/gpuaas/app-platform/ent/generated/db/allocation"
	dbproject "github.com/gpuaas/app-platform/ent/generated/db/project"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/audit"
	"github.com/gpuaas/app-platform/service/check"
	"github.com/gpuaas/app-platform/service/idem"
)

// RequestInput is what capacity is asked for.
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
}

// placePattern is a region, a SKU or a scheduler's name.
var placePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// Request rents capacity: all that is asked for or nothing. It asks for allocation.create on the
// project.
//
// Faults: INVALID_ARGUMENT, NOT_FOUND, FORBIDDEN, CAPACITY_EXHAUSTED when no node fits,
// IDEMPOTENCY_KEY_REUSED.
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
			Verb: "requestAllocation", TenantID: project.TenantID, ProjectID: project.ID, Value: in.IdempotencyKey, Input: in,
		}, &made)
		if err != nil {
			return err
		}
		if repeated {
			out, err = t.Allocation.Query().Where(dballocation.IDIn(made...)).Order(db.Asc(dballocation.FieldID)).All(ctx)
			return err
		}
		out, err = in.write(ctx, t, project, made)
		return err
	})
	return out, err
}

// check refuses input that is wrong by itself.
func (in *RequestInput) check() error {
	wrong := &check.Input{}
	if in.Count < 1 || in.Count > maxCount {
		wrong.Bad("input.count", "must be 1 to %d", maxCount)
	}
	switch in.Shape {
	case lifecycle.ShapeBaremetal:
		if in.GPUCount != nil {
			wrong.Bad("input.gpuCount", "leave it out for BAREMETAL, which takes all of a node's")
		}
	case lifecycle.ShapeGPUSlice:
		if in.GPUCount == nil || *in.GPUCount < 1 || *in.GPUCount > maxGPUs {
			wrong.Bad("input.gpuCount", "must be 1 to %d for GPU_SLICE", maxGPUs)
		}
	default:
		wrong.Bad("input.shape", "must be BAREMETAL or GPU_SLICE")
	}
	for path, value := range map[string]string{"input.sku": in.SKU, "input.region": in.Region, "input.schedulerType": in.SchedulerType} {
		if value != "" && !placePattern.MatchString(value) {
			wrong.Bad(path, "must be letters, digits, dot, dash and underscore, at most 64")
		}
	}
	wrong.Text("input.name", in.Name, 0, 80)
	if len(in.IntegrationMetadata) > maxMetadata || strings.Contains(string(in.IntegrationMetadata), `\u0000`) {
		wrong.Bad("input.integrationMetadata", "must be at most %d bytes, without NUL characters", maxMetadata)
	}
	return wrong.Err()
}

// authorise loads the project and asks for the key.
func authorise(ctx context.Context, t *tx.Tx, id ids.ID) (*db.Project, error) {
	const action = "requestAllocation"
	project, err := t.Project.Query().Where(dbproject.ID(id)).Only(ctx)
	if db.IsNotFound(err) {
		return nil, audit.Missing(t, action, authz.AllocationCreate, id)
	}
	if err != nil {
		return nil, fmt.Errorf("load project %s: %w", id, err)
	}
	return project, audit.Require(t, action, authz.AllocationCreate, authz.Object{TenantID: project.TenantID, ProjectID: project.ID}, id)
}

// write binds each allocation to a node and stores it.
func (in *RequestInput) write(ctx context.Context, t *tx.Tx, project *db.Project, made []ids.ID) ([]*db.Allocation, error) {
	out := make([]*db.Allocation, len(made))
	for i, id := range made {
		row, err := in.place(ctx, t, project, id, i)
		if err != nil {
			return nil, err
		}
		out[i] = row
	}
	return out, audit.Write(ctx, t, audit.Entry{
		Action: "requestAllocation", Key: authz.AllocationCreate, ObjectID: project.ID,
		Object: authz.Object{TenantID: project.TenantID, ProjectID: project.ID},
		After:  map[string]any{"allocations": made, "shape": in.Shape, "gpuCount": out[0].GpuCount, "sku": in.SKU, "region": in.Region},
	})
}

// place finds a node for one allocation; the node's row stays locked until the commit.
func (in *RequestInput) place(ctx context.Context, t *tx.Tx, project *db.Project, id ids.ID, index int) (*db.Allocation, error) {
	wanted := 0
	if in.GPUCount != nil {
		wanted = *in.GPUCount
	}
	var node ids.ID
	var gpus int
	var region, sku string
	err := t.QueryRow(ctx, `SELECT node_id, node_gpus, node_region, node_sku FROM platform.pick_node($1, $2, $3, $4)`,
		in.Shape, wanted, in.SKU, in.Region).Scan(&node, &gpus, &region, &sku)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, fault.New(fault.CapacityUnavailable, "no node has room for allocation %d of %d just now", index+1, in.Count)
	}
	if err != nil {
		return nil, fmt.Errorf("pick a node: %w", err)
	}
	if in.Shape == lifecycle.ShapeGPUSlice {
		gpus = wanted
	}
	create := t.Allocation.Create().SetID(id).SetTenantID(project.TenantID).SetProjectID(project.ID).SetName(in.nameOf(id, index)).
		SetShape(in.Shape).SetGpuCount(gpus).SetSku(sku).SetRegion(region).SetStatus(lifecycle.AllocationReady).SetNodeID(node).
		SetSchedulerType(in.SchedulerType).SetCreatedAt(t.Now)
	if len(in.IntegrationMetadata) > 0 {
		create.SetIntegrationMetadata(in.IntegrationMetadata)
	}
	row, err := create.Save(ctx)
	if err != nil {
		return nil, fmt.Errorf("store allocation %s: %w", id, err)
	}
	return row, nil
}

// nameOf numbers the names when several are asked for, and makes one up from the id when none is given.
func (in *RequestInput) nameOf(id ids.ID, index int) string {
	short := string(id[len(id)-6:])
	switch {
	case in.Name == "" && in.Shape == lifecycle.ShapeGPUSlice:
		return "slice-" + short
	case in.Name == "":
		return "node-" + short
	case in.Count == 1:
		return in.Name
	}
	return fmt.Sprintf("%s-%d", in.Name, index+1)
}
