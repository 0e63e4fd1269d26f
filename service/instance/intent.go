package instance

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/service/kit/capacity"
	"github.com/gpuaas/app-platform/service/kit/check"
)

// house settles where the members live of a launch that names no allocations itself: in those that their components
// name, which are the launch's then, or in capacity that is requested by their components' intents.
func (in *LaunchInput) house() {
	if len(in.AllocationIDs) > 0 {
		return
	}
	in.AllocationIDs, in.Components = nil, slices.Clone(in.Components)
	for i := range in.Components {
		component := &in.Components[i]
		component.Requests = component.Intent != nil && len(component.AllocationIDs) == 0
		for _, id := range component.AllocationIDs {
			if !slices.Contains(in.AllocationIDs, id) {
				in.AllocationIDs = append(in.AllocationIDs, id)
			}
		}
	}
}

// requested returns how many allocations the launch requests: one for each member of components that request them.
func (in *LaunchInput) requested() (count int) {
	for _, component := range in.Components {
		if component.Requests {
			count += max(component.Count, 0)
		}
	}
	return count
}

// wrongIntents returns what is wrong with what further members are to live in.
func (in *LaunchInput) wrongIntents() []fault.Reason {
	wrong := &check.Input{}
	for i, component := range in.Components {
		if component.Intent != nil {
			component.Intent.Check(wrong, fmt.Sprintf("input.components.%d.intent", i))
		}
	}
	refused, ok := fault.As(wrong.Err())
	if !ok {
		return nil
	}
	return refused.Reasons
}

// intents returns what further members are to live in, by component; empty for an instance that was launched without.
func (v *View) intents() (map[string]*capacity.Want, error) {
	stored := map[string]*capacity.Want{}
	if len(v.CapacityIntent) == 0 {
		return stored, nil
	}
	if err := json.Unmarshal(v.CapacityIntent, &stored); err != nil {
		return nil, fmt.Errorf("read the capacity intent of %s: %w", v.ID, err)
	}
	return stored, nil
}
