package verdict

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/change"
	"github.com/gpuaas/app-platform/service/kit/overlay"
)

// launchCapacity places an allocation for each member of the components that request them, and refuses members that
// would have nowhere to live. A plan's transaction rolls back what was placed.
func (v *Verdicts) launchCapacity(ctx context.Context, t *tx.Tx) error {
	v.housed = make(map[string][]*db.Allocation)
	v.settle()
	for i, component := range v.Launch.Components {
		if !component.Requests {
			continue
		}
		path := fmt.Sprintf("input.components.%d.intent", i)
		if err := component.Intent.Permitted(v.Terms.Policy, path); err != nil {
			return err
		}
		made, err := v.create(ctx, t, v.walled(*component.Intent), v.Counts[component.Key], component.Key, path)
		if err != nil {
			return err
		}
		v.housed[component.Key] = made
		v.asked = append(v.asked, slices.Repeat([]string{path}, len(made))...)
	}
	if err := v.homeless(); err != nil || len(v.Created) == 0 || !v.Terms.Counts() {
		return err
	}
	var err error // what was placed counts from now on
	v.usage, err = overlay.Count(ctx, t, v.Project.ID, v.Instance.AppSlug, v.ForUpdate())
	return err
}

// homeless refuses a launch into requested capacity in which a component with members requests none.
func (v *Verdicts) homeless() error {
	if len(v.Named) > 0 {
		return nil
	}
	for _, component := range v.Next.Components {
		if v.Counts[component.Key] == 0 || len(v.housed[component.Key]) > 0 {
			continue
		}
		at := slices.IndexFunc(v.Launch.Components, func(c change.Component) bool { return c.Key == component.Key })
		path := "input.components"
		if at >= 0 {
			path = fmt.Sprintf("input.components.%d.intent", at)
		}
		message := fmt.Sprintf("component %q has no capacity: name allocations, or state in its intent what to request",
			component.Key)
		return fault.New(fault.InvalidArgument, "%s", message).
			With(fault.Reason{Code: fault.Required, Message: message, Path: path})
	}
	return nil
}

// launchPath returns the input field behind a path of the rules that is of no single allocation.
func (v *Verdicts) launchPath(path string) string {
	rest, ok := strings.CutPrefix(path, "allocations")
	switch {
	case !ok:
		return path
	case len(v.Named) == 0:
		return "input.components"
	}
	return "input.allocationIds" + rest
}

// capacityPath returns the input field that a launch's capacity is limited at.
func (v *Verdicts) capacityPath() string {
	if len(v.Created) > 0 {
		return "input.components"
	}
	return "input.allocationIds"
}
