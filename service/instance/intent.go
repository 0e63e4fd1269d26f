package instance

import (
	"encoding/json"
	"fmt"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/service/kit/capacity"
	"github.com/gpuaas/app-platform/service/kit/check"
)

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
