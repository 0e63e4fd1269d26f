package verdict

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/manifest"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/change"
	"github.com/gpuaas/app-platform/service/kit/capacity"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// evaluateLaunch evaluates a launch's rules in the order in which a person would mend things, up to the first refusal:
// a launch's plan shows no further ones.
func (v *Verdicts) evaluateLaunch(ctx context.Context, t *tx.Tx) error {
	for _, rule := range []struct {
		source lifecycle.VerdictSource
		ask    func(ctx context.Context, t *tx.Tx) error
	}{
		{lifecycle.VerdictPolicy, v.launchEntitled},
		{lifecycle.VerdictState, v.launchVersion},
		{lifecycle.VerdictState, v.launchVolumes},
		{lifecycle.VerdictState, v.launchAllocations},
		{lifecycle.VerdictCompatibility, v.launchCounts},
		{lifecycle.VerdictState, v.launchCapacity},
		{lifecycle.VerdictPolicy, v.launchPermitted},
		{lifecycle.VerdictCompatibility, v.launchFits},
		{lifecycle.VerdictQuota, v.launchQuota},
		{lifecycle.VerdictCompatibility, func(context.Context, *tx.Tx) error { return v.volumesServed() }},
	} {
		if err := v.answer(rule.source, rule.ask(ctx, t)); err != nil || v.Refused() != nil {
			return err
		}
	}
	return nil
}

// launchAllocations locks the allocations and refuses those that cannot be used.
func (v *Verdicts) launchAllocations(ctx context.Context, t *tx.Tx) (err error) {
	if err := v.LoadAllocations(ctx, t); err != nil {
		return err
	}
	if v.Named, err = v.usable(v.AllocationIDs); err != nil {
		return err
	}
	if err := v.LoadAllNodes(ctx, t); err != nil {
		return err
	}
	return v.taking(v.Named)
}

// launchCounts settles how many members each component gets.
func (v *Verdicts) launchCounts(context.Context, *tx.Tx) error {
	want := make(map[string]int, len(v.Launch.Components))
	for i, component := range v.Launch.Components {
		if _, twice := want[component.Key]; twice {
			return fault.New(fault.InvalidArgument, "component %q is named twice", component.Key).
				At(fmt.Sprintf("input.components.%d.key", i))
		}
		want[component.Key] = component.Count
	}
	counts, reasons := manifest.Counts(v.Next, want)
	if len(reasons) > 0 {
		return fault.New(fault.InvalidArgument, "the component counts do not fit the manifest").
			With(change.ComponentPaths(v.Launch.Components, reasons)...)
	}
	v.Counts = counts
	return nil
}

// launchFits checks allocations, counts and config against the manifest.
func (v *Verdicts) launchFits(context.Context, *tx.Tx) error {
	if err := v.fits(v.Next, v.Counts); err != nil {
		return err
	}
	config, err := configured(v.Next, v.Config)
	if err != nil {
		return err
	}
	v.To = &operation.Version{ManifestID: v.Target.ID, Version: v.Target.Version, Config: config}
	return nil
}

// launchQuota seats the members and counts them against the project's quota.
func (v *Verdicts) launchQuota(ctx context.Context, t *tx.Tx) error {
	v.seatLaunch()
	if err := capacity.Members(ctx, t, v.Project, len(v.Seats), "input.components"); err != nil || len(v.Created) == 0 {
		return err
	}
	return capacity.GPUs(ctx, t, v.Project, "input.components")
}

// seatLaunch spreads each component's members over its allocations, in the manifest's order. The caller decides where
// they are best placed; the platform does not interpret a component.
func (v *Verdicts) seatLaunch() {
	chosen := make(map[string][]*db.Allocation)
	for _, component := range v.Launch.Components {
		for _, id := range component.AllocationIDs {
			chosen[component.Key] = append(chosen[component.Key], v.Allocations[id])
		}
	}
	for _, component := range v.Next.Components {
		allocations := chosen[component.Key]
		if len(allocations) == 0 {
			allocations = v.housed[component.Key]
		}
		if len(allocations) == 0 {
			allocations = v.Named
		}
		members := make([]ids.ID, v.Counts[component.Key])
		for i := range members {
			members[i] = ids.New(ids.Member)
		}
		v.seat(component.Key, 0, members, allocations)
	}
}
