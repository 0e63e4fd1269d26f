package change

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/manifest"
	"github.com/gpuaas/app-platform/ent/generated/db"
)

// compatible asks the manifest: bounds of the component, fit of the allocations, config, and whether
// the adapter carries out the kind at all.
func (c *Change) compatible() error {
	if err := c.supported(); err != nil {
		return err
	}
	switch {
	case c.To != nil:
		return c.versionFits()
	case c.Rule.More != 0:
		if err := c.withinBounds(); err != nil {
			return err
		}
	}
	if !c.Rule.Places {
		return nil
	}
	return c.fits(c.Manifest)
}

// supported refuses a kind that the adapter, by its own description, does not carry out. One that has
// not described itself is not judged, and a teardown never is.
func (c *Change) supported() error {
	if c.Adapter == nil || c.Kind == lifecycle.InstanceDecommission {
		return nil
	}
	var said struct {
		Apps []struct {
			Slug       string   `json:"slug"`
			Operations []string `json:"operations"`
		} `json:"apps"`
	}
	if json.Unmarshal(c.Adapter.Description, &said) != nil {
		return nil
	}
	for _, app := range said.Apps {
		if app.Slug == c.Instance.AppSlug && len(app.Operations) > 0 && !slices.Contains(app.Operations, c.Kind.WireName()) {
			return fault.New(fault.Incompatible, "adapter %q does not carry out %s for this app", c.Adapter.Name, c.Kind.WireName()).At(c.subject())
		}
	}
	return nil
}

// withinBounds holds the members asked for against the component's bounds.
func (c *Change) withinBounds() error {
	key, path, more := c.ComponentKey, "input.count", c.Count
	if c.Rule.More < 0 {
		key, path, more = c.Member.ComponentKey, "input.memberId", -1
	}
	component, ok := c.Manifest.Component(key)
	if !ok && more > 0 {
		return fault.New(fault.InvalidArgument, "the app has no component %q", key).
			With(fault.Reason{Code: fault.UnknownComponent, Message: "is not a component of this app", Path: "input.componentKey"})
	}
	after := c.Wanted[key] + more
	if !ok || (after >= component.Min && after <= component.Max) {
		return nil
	}
	return fault.New(fault.LimitExceeded, "component %q may have %d to %d members, and this would make %d", key, component.Min, component.Max, after).
		With(fault.Reason{Code: fault.CountOutOfBounds, Message: "must stay from " + strconv.Itoa(component.Min) + " to " + strconv.Itoa(component.Max), Path: path})
}

// fits holds the allocations that the instance uses afterwards against a manifest.
func (c *Change) fits(m *manifest.Manifest) error {
	after := c.afterwards()
	shapes := make([]manifest.AllocationShape, len(after))
	for i, allocation := range after {
		shapes[i] = manifest.AllocationShape{Shape: allocation.Shape, GPUs: allocation.GpuCount}
	}
	verdict := manifest.Compatible(m, shapes, nil)
	for i, reason := range verdict.Reasons {
		verdict.Reasons[i].Path = c.located(reason.Path, after)
	}
	return verdict.Err()
}

// located is the input field behind a path of the rules, such as "allocations.2".
func (c *Change) located(path string, after []*db.Allocation) string {
	number, one := strings.CutPrefix(path, "allocations.")
	i, err := strconv.Atoi(number)
	switch {
	case c.Intent != nil:
		return "input.intent"
	case one && err == nil && slices.Contains(c.AllocationIDs, after[i].ID):
		return c.allocationPath(slices.Index(c.AllocationIDs, after[i].ID))
	case c.Kind == lifecycle.MembersAdd:
		return "input.allocationIds"
	case c.Kind == lifecycle.MemberReplace:
		return "input.allocationId"
	}
	return "input.version"
}
