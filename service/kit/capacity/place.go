package capacity

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/isolation"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
)

// place is a node with what an allocation would hold of it.
type place struct {
	node            ids.ID
	gpus            int
	region, sku     string
	cpus, memoryMiB int
	devices         []isolation.Device
}

// Place binds an allocation to a node, whose row stays locked until the commit, with the devices that it holds, and
// stores it. CAPACITY_EXHAUSTED when no node that policy lets through has the capacity; ISOLATION_UNAVAILABLE when no
// node, free or not, offers the isolation; INCOMPATIBLE with VOLUME_UNAVAILABLE when only nodes that do not serve the
// volumes have capacity.
func Place(ctx context.Context, t *tx.Tx, draft Draft) (*db.Allocation, error) {
	at, err := draft.pick(ctx, t)
	if err != nil {
		return nil, err
	}
	create := t.Allocation.Create().SetID(draft.ID).SetTenantID(draft.Project.TenantID).SetProjectID(draft.Project.ID).
		SetName(draft.name()).
		SetShape(draft.Want.Shape).SetSku(at.sku).SetRegion(at.region).SetStatus(lifecycle.AllocationReady).
		SetNodeID(at.node).
		SetDevices(at.devices).SetSchedulerType(draft.SchedulerType).SetCreatedAt(t.Now)
	draft.share(create, at)
	if draft.Want.Class != "" {
		create.SetIsolationClass(draft.Want.Class)
	}
	if len(draft.Metadata) > 0 {
		create.SetIntegrationMetadata(draft.Metadata)
	}
	if draft.CreatedBy != "" {
		create.SetCreatedByOperationID(draft.CreatedBy)
	}
	row, err := create.Save(ctx)
	if err != nil {
		return nil, fmt.Errorf("store allocation %s: %w", draft.ID, err)
	}
	return row, nil
}

// share writes what the allocation holds of its node: all of it, or the share of its GPUs.
func (d *Draft) share(create *db.AllocationCreate, at *place) {
	if d.Want.Shape != lifecycle.ShapeGPUSlice {
		create.SetGpuCount(at.gpus)
		return
	}
	cpuMillis, memoryMiB := isolation.Share(at.cpus, at.memoryMiB, at.gpus, *d.Want.GPUCount)
	create.SetGpuCount(*d.Want.GPUCount).SetCPUMillis(cpuMillis).SetMemoryMib(memoryMiB)
}

// pick locks a node that has the capacity.
func (d *Draft) pick(ctx context.Context, t *tx.Tx) (*place, error) {
	wanted := 0
	if d.Want.GPUCount != nil {
		wanted = *d.Want.GPUCount
	}
	skus, regions := d.choices()
	walls := d.walls()
	classes := walls.Classes(d.Want.Shape == lifecycle.ShapeBaremetal)
	storages, kinds := d.Lodging.columns()
	at := &place{}
	err := t.QueryRow(ctx, `SELECT node_id, node_gpus, node_region, node_sku, node_cpus, node_memory_mib, held_devices
		FROM platform.pick_node($1, $2, $3, $4, $5, $6, $7, $8, $9, $10,
		$11, $12, $13, $14, $15)`, d.Want.Shape, wanted, d.Want.SKU, d.Want.Region, skus.Only,
		skus.Not, regions.Only, regions.Not, classes, walls.Demanding(), d.Want.Profile, storages, kinds,
		d.Lodging.Node,
		wanted*d.Lodging.Together).
		Scan(&at.node, &at.gpus, &at.region, &at.sku, &at.cpus, &at.memoryMiB, &at.devices)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, d.full(ctx, t, walls, classes)
	}
	if err != nil {
		return nil, fmt.Errorf("pick a node: %w", err)
	}
	return at, nil
}

// walls are what the nodes must offer: what is wanted, as far as policy allows it.
func (d *Draft) walls() isolation.Want {
	return isolation.Want{Class: d.Want.Class, Profile: d.Want.Profile, Allowed: d.Policy.ClassAllowed}
}

// full returns why no node was picked: none has the capacity now, or no node offers such isolation at all.
func (d *Draft) full(ctx context.Context, t *tx.Tx, walls isolation.Want, classes []isolation.Class) error {
	var exists bool
	err := t.QueryRow(ctx, `SELECT platform.any_walls($1, $2, $3)`, classes, walls.Demanding(),
		d.Want.Profile).Scan(&exists)
	if err != nil {
		return fmt.Errorf("find nodes with such isolation: %w", err)
	}
	if exists || (!walls.Demanding() && d.Want.Profile == "") {
		return d.short(ctx, t, walls, classes)
	}
	what := walls.Text(d.Want.Shape == lifecycle.ShapeBaremetal)
	if d.Want.Profile != "" {
		what += " with the profile " + string(d.Want.Profile)
	}
	return fault.New(fault.ClassUnavailable,
		"no node of the platform offers %s: request less, or ask the operator for such nodes", what)
}
