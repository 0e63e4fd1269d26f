// Package policy is what overlays on the platform, a tenant and a project leave of a project's choices:
// intersections of allows, unions of denies, the lowest of ceilings. A lower level only narrows.
//
// An overlay is a Document. Merge takes those of the three levels, widest first, and returns an Effective of
// them: sets and prefix tables that need a few look-ups for each check, however many rules there are.
// Every level must allow what is checked, so that no order of merging and no lower overlay
// can give back what a level takes away. Without any overlay the platform allows everything but two
// things that it must allow by name: a control plane that it runs itself, and secrets for other purposes
// than pulling artifacts.
//
// A check returns nil or a POLICY_DENIED fault. Its reasons, one for each level that refuses, name the rule,
// its level and the input field. Join makes one fault of the results of many checks.
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
	// Origin is the level that it belongs to, and OverlayID the overlay that holds it; nil for a default of the
	// platform.
	Origin    lifecycle.PolicyScope
	OverlayID *ids.ID
	// Final says that it is a rule of the platform that no lower level can change.
	Final bool
	// Message is the rule for a person.
	Message string
}

// Level is an overlay on its level.
type Level struct {
	Scope     lifecycle.PolicyScope
	OverlayID *ids.ID // nil for an overlay that is not written yet
	Document  *Document
}

// list is a dimension that is ruled by lists of words.
type list int

const (
	regions list = iota
	skus
	sources
	apps
	versions
	modes
	planes
	purposes
	classes
	profiles
	access
	storageClasses
	lists // how many there are
)

// ceiling is a dimension that is ruled by a number.
type ceiling int

const (
	membersOfInstance ceiling = iota
	members
	gpus
	instances
	volumeGiB
	ceilings // how many there are
)

var (
	listNames = [lists]string{"regions", "skus", "artifactSources", "apps", "versions", "operatingModes",
		"controlPlaneScopes", "secretPurposes",
		"isolationClasses", "memberProfiles", "access", "storageClasses"}
	listNouns = [lists]string{"region", "SKU", "artifact source", "app", "version", "operating mode",
		"control-plane scope", "secret purpose",
		"isolation class", "member profile", "way of access", "storage class"}
	ceilingNames = [ceilings]string{"maxMembersPerInstance", "maxMembers", "maxGpus", "maxInstances", "maxVolumeGiB"}
	ceilingNouns = [ceilings]string{"members in one instance", "members in a project", "GPUs in a project",
		"instances in a project", "GiB of volumes in a project"}
)

const (
	hourlyCost = "maxHourlyCost"
	finalWords = "final"
)
