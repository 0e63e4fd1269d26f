package verdict

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/manifest"
	"github.com/gpuaas/app-platform/domain/policy"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/change"
)

// compatible checks the manifest: bounds of the component, fit of the allocations, config, and whether the adapter
// carries out the kind at all.
func (v *Verdicts) compatible(ctx context.Context, t *tx.Tx) error {
	if err := v.supported(); err != nil {
		return err
	}
	switch {
	case v.To != nil:
		return v.versionFits()
	case v.Rule.More != 0:
		if err := v.withinBounds(); err != nil {
			return err
		}
	}
	if !v.Rule.Places {
		return nil
	}
	if err := v.fits(v.Manifest, nil); err != nil {
		return err
	}
	return v.volumesServed()
}

// supported refuses a kind that the adapter, by its own description, does not carry out. An adapter without a
// description is not judged, and a teardown never is.
func (v *Verdicts) supported() error {
	if v.Adapter == nil || v.Kind == lifecycle.InstanceDecommission {
		return nil
	}
	app := change.Described(v.Adapter, v.Instance.AppSlug)
	if len(app.Operations) > 0 && !slices.Contains(app.Operations, v.Kind.WireName()) {
		return fault.New(fault.Incompatible, "adapter %q does not carry out %s for this app", v.Adapter.Name,
			v.Kind.WireName()).At(v.SubjectPath())
	}
	return nil
}

// withinBounds checks the desired members against the component's bounds.
func (v *Verdicts) withinBounds() error {
	if v.Rule.More > 0 {
		if _, ok := v.Manifest.Component(v.ComponentKey); !ok {
			return v.unknownComponent()
		}
		return v.within(v.ComponentKey, v.Count, "input.count")
	}
	for _, key := range slices.Sorted(maps.Keys(v.Leaves())) {
		path := "input.count"
		if v.Scale == nil {
			path = v.SubjectPath()
		}
		if err := v.within(key, -v.Leaves()[key], path); err != nil {
			return err
		}
	}
	return nil
}

// within checks the desired members of one component, with more than now, against its bounds. A component that the app
// has no more has none.
func (v *Verdicts) within(key string, more int, path string) error {
	component, ok := v.Manifest.Component(key)
	after := v.Wanted[key] + more
	if !ok || (after >= component.Min && after <= component.Max) {
		return nil
	}
	return fault.New(fault.LimitExceeded, "component %q may have %d to %d members, and this would make %d", key,
		component.Min, component.Max, after).
		With(fault.Reason{Code: fault.CountOutOfBounds,
			Message: "must stay from " + strconv.Itoa(component.Min) + " to " + strconv.Itoa(component.Max),
			Path:    path})
}

// Shape returns what compatibility judges of an allocation on a node, nil for one that is not known, under policy.
func Shape(allocation *db.Allocation, node *db.ComputeNode, rules *policy.Effective) manifest.AllocationShape {
	shape := manifest.AllocationShape{Shape: allocation.Shape, GPUs: allocation.GpuCount}
	if node != nil {
		shape.Walls = node.Walls
	}
	if allocation.IsolationClass != nil {
		shape.Least = *allocation.IsolationClass
	}
	if rules != nil {
		shape.Allowed = rules.ClassAllowed
	}
	return shape
}

// shapes returns what compatibility judges of allocations.
func (v *Verdicts) shapes(allocations []*db.Allocation) []manifest.AllocationShape {
	shapes := make([]manifest.AllocationShape, len(allocations))
	for i, allocation := range allocations {
		shapes[i] = Shape(allocation, v.nodeOf(allocation), v.rules())
		shapes[i].Settled = v.Launch == nil && !slices.ContainsFunc(v.Seats, func(s Seat) bool {
			return s.Allocation.ID == allocation.ID
		})
	}
	return shapes
}

// fits checks the allocations that the instance uses afterwards against a manifest; counts are those of a launch.
func (v *Verdicts) fits(m *manifest.Manifest, counts map[string]int) error {
	after := v.Afterwards()
	verdict := manifest.Compatible(m, v.shapes(after), counts)
	for i, reason := range verdict.Reasons {
		verdict.Reasons[i].Path = v.located(reason.Path, after)
	}
	return verdict.Err()
}

// located returns the input field behind a path of the rules, such as "allocations.2".
func (v *Verdicts) located(path string, after []*db.Allocation) string {
	number, one := strings.CutPrefix(path, "allocations.")
	i, err := strconv.Atoi(number)
	switch {
	case v.Launch != nil && one && err == nil: // after is in the request's order
		return v.allocationPath(i)
	case v.Launch != nil:
		return v.launchPath(path)
	case v.Intent != nil:
		return "input.intent"
	case one && err == nil && slices.Contains(v.AllocationIDs, after[i].ID):
		return v.allocationPath(slices.Index(v.AllocationIDs, after[i].ID))
	case v.Kind == lifecycle.MembersAdd:
		return "input.allocationIds"
	case v.Kind == lifecycle.MemberReplace:
		return "input.allocationId"
	}
	return "input.version"
}
