// Package policy is what overlays on the platform, a tenant and a project leave of a project's choices:
// intersections of allows, unions of denies, the lowest of ceilings. A lower level only narrows.
package policy

import (
	"io"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
)

// Effect is what a rule does.
type Effect string

// The effects.
const (
	Allow   Effect = "ALLOW"
	Deny    Effect = "DENY"
	Ceiling Effect = "CEILING"
)

// Values lists every Effect as it is stored and published.
func (Effect) Values() []string { return []string{string(Allow), string(Deny), string(Ceiling)} }

// MarshalGQL writes the value to a GraphQL answer.
func (e Effect) MarshalGQL(w io.Writer) { _, _ = io.WriteString(w, `"`+string(e)+`"`) }

// UnmarshalGQL reads a GraphQL enum value; effects are only ever answered.
func (e *Effect) UnmarshalGQL(v any) error { text, _ := v.(string); *e = Effect(text); return nil }

// Rule is one rule that holds for a project, with where it comes from.
type Rule struct {
	// Dimension is what it is about, such as "regions".
	Dimension string
	// Effect is what it does.
	Effect Effect
	// Values are sorted; none for a ceiling.
	Values []string
	// Limit is the ceiling; nil for others.
	Limit *int
	// Origin is the level it stands on, and OverlayID the overlay that holds it; nil for what the platform does
	// without being told.
	Origin    lifecycle.PolicyScope
	OverlayID *ids.ID
	// Final is the platform's last word.
	Final bool
	// Message says it for a person.
	Message string
}
