// Package described compares a manifest with what its adapter describes. It is pure.
package described

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/manifest"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// Description is the part of an adapter's description that a manifest is checked against.
type Description struct {
	Build            string   `json:"build"`
	ContractVersions []string `json:"contractVersions"`
	Apps             []struct {
		Slug       string               `json:"slug"`
		Components []manifest.Component `json:"components"`
		Actions    []manifest.Action    `json:"actions"`
	} `json:"apps"`
}

// Names reports whether the adapter was written for the app: it describes it by its slug, and not any app.
func (d *Description) Names(app string) bool {
	for _, one := range d.Apps {
		if one.Slug == app {
			return true
		}
	}
	return false
}

// risks orders how careful a caller must be.
var risks = []string{"read", "write", "destructive"}

// offers returns what the description promises of an app: its own entry, otherwise the one for any app; false for
// neither.
func (d *Description) offers(slug string) (offered manifest.Manifest, ok bool) {
	for _, app := range d.Apps {
		entry := manifest.Manifest{Components: app.Components, Actions: app.Actions}
		switch app.Slug {
		case slug:
			return entry, true
		case adapter.AnyApp:
			offered, ok = entry, true
		}
	}
	return offered, ok
}

// Findings returns what the manifest promises and its adapter does not, each with its path in the manifest.
func (d *Description) Findings(m *manifest.Manifest) []fault.Reason {
	var found []fault.Reason
	add := func(code fault.Code, path, format string, args ...any) {
		found = append(found, fault.Reason{Code: code, Message: fmt.Sprintf(format, args...), Path: path})
	}
	if !slices.ContainsFunc(d.ContractVersions, func(v string) bool {
		return v == "1" || strings.HasPrefix(v, "1.")
	}) {
		add(fault.UnknownValue, "adapter", "the adapter does not support version 1 of the contract")
	}
	offered, runs := d.offers(m.App)
	if !runs {
		add(fault.UnknownValue, "app", "the adapter does not run this app")
		return found
	}
	for i, c := range m.Components {
		theirs, ok := offered.Component(c.Key)
		switch {
		case !ok:
			add(fault.UnknownComponent, fmt.Sprintf("components.%d.key", i), "the adapter has no component %q", c.Key)
		case c.Min < theirs.Min || c.Max > theirs.Max:
			add(fault.CountOutOfBounds, fmt.Sprintf("components.%d", i), "the adapter accepts %d to %d members",
				theirs.Min, theirs.Max)
		}
	}
	for i, action := range m.Actions {
		theirs, ok := offered.Action(action.Name)
		switch {
		case !ok:
			add(fault.UnknownValue, fmt.Sprintf("actions.%d.name", i), "the adapter has no action %q", action.Name)
		case theirs.PermissionKey != action.PermissionKey:
			add(fault.BadValue, fmt.Sprintf("actions.%d.permissionKey", i), "the adapter requires %s",
				theirs.PermissionKey)
		case slices.Index(risks, action.Risk) < slices.Index(risks, theirs.Risk):
			add(fault.BadValue, fmt.Sprintf("actions.%d.risk", i), "the adapter declares the risk %s", theirs.Risk)
		}
	}
	return found
}
