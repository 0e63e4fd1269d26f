package verdict

import (
	"context"
	"slices"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/manifest"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/tariff"
)

// reckon reads the change's effect on the price of an hour: for its plan, and for rules that bound the price.
func (v *Verdicts) reckon(ctx context.Context, t *tx.Tx) (err error) {
	if v.Cost != nil || !v.Planned() && !v.Rule.Places {
		return nil
	}
	v.Cost, err = tariff.Reckon(ctx, t, tariff.Payer{TenantID: v.Instance.TenantID, ProjectID: v.Instance.ProjectID},
		v.items(),
		v.dimensions())
	return err
}

// dimensions are what the use of the app will be metered in, where members come or another version does.
func (v *Verdicts) dimensions() []manifest.UsageDimension {
	switch {
	case v.Next != nil:
		return v.Next.UsageDimensions
	case v.Rule.Places && v.Manifest != nil:
		return v.Manifest.UsageDimensions
	}
	return nil
}

// items are the allocations that the change bears on: those that the instance uses, and those that members come to.
func (v *Verdicts) items() []tariff.Item {
	used := make(map[ids.ID]*db.Allocation)
	for _, allocation := range slices.Concat(v.Named, v.Created) {
		used[allocation.ID] = allocation
	}
	for id, allocation := range v.Allocations {
		if v.Launch == nil && allocation.InstanceID != nil && *allocation.InstanceID == v.Instance.ID {
			used[id] = allocation
		}
	}
	for _, seat := range v.Seats {
		used[seat.Allocation.ID] = seat.Allocation
	}
	items, lived := make([]tariff.Item, 0, len(used)), v.livedIn()
	for id, row := range used {
		items = append(items, tariff.Item{Capacity: kindOf(row), Effect: v.effect(id, lived)})
	}
	return items
}

func kindOf(row *db.Allocation) tariff.Capacity {
	return tariff.Kind(row.Shape, row.GpuCount, row.Sku, row.Region)
}

// effect returns what becomes of an allocation.
func (v *Verdicts) effect(id ids.ID, lived map[ids.ID]bool) tariff.Effect {
	for _, created := range v.Created {
		if created.ID == id {
			return tariff.Rented
		}
	}
	if v.Launch != nil || lived[id] {
		return tariff.Kept
	}
	return tariff.Left
}

// livedIn are the allocations in which members live once the change is done.
func (v *Verdicts) livedIn() map[ids.ID]bool {
	lived := make(map[ids.ID]bool)
	for _, member := range v.Members {
		if member.AllocationID != nil && !v.leaves(member) {
			lived[*member.AllocationID] = true
		}
	}
	for _, seat := range v.Seats {
		lived[seat.Allocation.ID] = true
	}
	return lived
}

// leaves reports whether the change takes the member out.
func (v *Verdicts) leaves(member *db.Member) bool {
	if v.Kind == lifecycle.MemberRemove {
		return slices.Contains(v.Targets(), member.ID)
	}
	goes := v.Rule.Touches == lifecycle.PlanRemove || v.Rule.Touches == lifecycle.PlanReplace
	return goes && (v.MemberID == "" || v.MemberID == member.ID)
}
