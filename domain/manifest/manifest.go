package manifest

import (
	_ "embed"
	"encoding/json"
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/sdk/nodetask"
)

// SchemaV1 is the value of a manifest's member "schema".
const SchemaV1 = "gpuaas.app/manifest/v1"

//go:embed manifest.schema.json
var documentSchema []byte

// DocumentSchema returns the JSON Schema of a manifest document, for tools that write them. It covers shape and
// bounds; Parse also checks the parts against each other.
func DocumentSchema() []byte { return slices.Clone(documentSchema) }

// Manifest is a parsed manifest, which Parse has found to hold together.
type Manifest struct {
	// Schema is SchemaV1.
	Schema string `json:"schema"`
	// App is the app's slug in the catalog.
	App string `json:"app"`
	// Version is a semantic version without a leading v.
	Version string `json:"version"`
	// DisplayName and Summary are for people.
	DisplayName string `json:"displayName"`
	Summary     string `json:"summary"`
	// Icon is a data URL of a PNG, WebP or SVG picture; empty for none.
	Icon string `json:"icon,omitempty"`
	// ArtifactKind is "oci", "launchable" or "controller".
	ArtifactKind string `json:"artifactKind"`
	// Artifacts are pinned by digest, at least one.
	Artifacts []Artifact `json:"artifacts"`
	// Adapter is the registered name of the adapter that runs the app.
	Adapter string `json:"adapter"`
	// PermissionFamily is one of Families: verbs and actions need keys below it.
	PermissionFamily string `json:"permissionFamily"`
	// Compatibility says what capacity an instance needs.
	Compatibility Compatibility `json:"compatibility"`
	// Isolation says what walls its members need; nil for the profile "service" in a container.
	Isolation *Isolation `json:"isolation,omitempty"`
	// Requires is what the platform gives the app beyond capacity; nil for nothing.
	Requires *Requires `json:"requires,omitempty"`
	// Components are the app's logical parts, at least one, by the adapter's own words.
	Components []Component `json:"components"`
	// ConfigSchema is the JSON Schema of an instance's configuration, an object.
	ConfigSchema json.RawMessage `json:"configSchema"`
	// Actions are the requests that the app takes.
	Actions []Action `json:"actions"`
	// Work is which actions list, show and stop what the app works on; nil where it does not say.
	Work *Work `json:"work,omitempty"`
	// Inspections are the commands that the adapter may run in calls that change nothing, at most 64.
	Inspections []Inspection `json:"inspections,omitempty"`
	// Readiness are the probes that must pass, on every member of their component, before an instance is running.
	Readiness []Readiness `json:"readiness"`
	// SecretPurposes are the purposes that secrets may be issued for.
	SecretPurposes []string `json:"secretPurposes"`
	// Network is what members have on the members' network besides an address; nil for nothing.
	Network *Network `json:"network,omitempty"`
	// Endpoints are what people reach of an instance through the platform, at most 16.
	Endpoints []Endpoint `json:"endpoints,omitempty"`
	// Volumes are the slots in which an instance uses files that outlast its members, at most 8.
	Volumes []VolumeSlot `json:"volumes,omitempty"`
	// UsageDimensions are what the app's use is metered in.
	UsageDimensions []UsageDimension `json:"usageDimensions"`
	// RuntimeProfile is the adapter's own; the platform reads no meaning into it. Of ArtifactKind "launchable" its
	// shape is the document schema's $defs/runtimeProfile, and lint checks its names against Artifacts.
	RuntimeProfile json.RawMessage `json:"runtimeProfile,omitempty"`
	// Lifecycle is how it upgrades, rolls back and is deleted, as its publisher declares; a controller is not staged
	// without.
	Lifecycle *Lifecycle `json:"lifecycle,omitempty"`
	// Runbooks are where people read what to do when something is wrong, at most 20.
	Runbooks []Runbook `json:"runbooks,omitempty"`
	// Docs is Markdown for people.
	Docs string `json:"docs"`
}

// Lifecycle is declared behaviour: what a user may rely on.
type Lifecycle struct {
	// Upgrade is how a running instance gets to this version.
	Upgrade Behaviour `json:"upgrade"`
	// Rollback is how it gets back to the version before.
	Rollback Behaviour `json:"rollback"`
	// Delete is what becomes of its work and data when it is decommissioned.
	Delete Behaviour `json:"delete"`
}

// Behaviour is one way of behaving.
type Behaviour struct {
	// Mode is "rolling", "in_place", "recreate" or "unsupported" of an upgrade and a rollback; "graceful" or
	// "immediate" of a deletion.
	Mode string `json:"mode"`
	// From are version constraints of an upgrade, any of which lets a version in; none for all.
	From []string `json:"from,omitempty"`
	// KeepsWork says whether running work survives.
	KeepsWork bool `json:"keepsWork"`
	// Notes is for people, at most 500 characters.
	Notes string `json:"notes,omitempty"`
}

// Runbook is a link, with the steps by which support finds out what is wrong.
type Runbook struct {
	// Title is what it is about, at most 80 characters.
	Title string `json:"title"`
	// URL is where it is, https.
	URL string `json:"url"`
	// Triage are the steps, in order, at most 20; none where the page alone has them.
	Triage []TriageStep `json:"triage,omitempty"`
}

// TriageStep is one step from a symptom to its cause.
type TriageStep struct {
	// By is what the reader has then: one of TriageBy.
	By string `json:"by"`
	// Do is what the reader does with it, at most 500 characters.
	Do string `json:"do"`
}

// ByCorrelation is the By of a step that needs the correlation id alone, which every error shows.
const ByCorrelation = "correlation_id"

// TriageBy lists what a step of triage may begin from.
func TriageBy() []string {
	return []string{ByCorrelation, "trace_id", "operation_id", "instance_id", "member_id", "event", "log"}
}

// CorrelationFirst reports whether support gets from an error's correlation id to the next thing by the runbook's own
// steps: the first takes the id, and at least one follows.
func (r Runbook) CorrelationFirst() bool {
	return len(r.Triage) >= 2 && r.Triage[0].By == ByCorrelation
}

// Artifact is something in a registry, or a blob, pinned by digest.
type Artifact struct {
	// Name is unique in the manifest.
	Name string `json:"name"`
	// MediaType is what it holds.
	MediaType string `json:"mediaType"`
	// Ref is host/repository@digest, or a blob's https address.
	Ref string `json:"ref"`
	// Digest is "sha256:" and 64 hexadecimal digits, the same as in a registry's Ref.
	Digest string `json:"digest"`
}

// Component is one logical part of an app with its bounds on members.
type Component struct {
	// Key is the adapter's name for it, unique in the manifest.
	Key string `json:"key"`
	// DisplayName is for people.
	DisplayName string `json:"displayName"`
	// Min, Max and Default count members: 0 <= Min <= Default <= Max <= 1000, and Max >= 1.
	Min     int `json:"min"`
	Max     int `json:"max"`
	Default int `json:"default"`
}

// Action is a request that an app takes, passed through to its adapter.
type Action struct {
	// Name is unique in the manifest, such as "queue.submit".
	Name string `json:"name"`
	// DisplayName is for people.
	DisplayName string `json:"displayName"`
	// PermissionKey is a key of the manifest's family.
	PermissionKey string `json:"permissionKey"`
	// Risk is "read", "write" or "destructive".
	Risk string `json:"risk"`
	// InputSchema and OutputSchema are JSON Schemas.
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema"`
}

// Readiness is a probe that the node agents run on every member of a component.
type Readiness struct {
	// ComponentKey is one of the manifest's components.
	ComponentKey string `json:"componentKey"`
	// Name is unique in the component.
	Name string `json:"name"`
	// Probe is what is run.
	Probe Probe `json:"probe"`
}

// Probe is a check with its tries and times; exactly one of Exec, TCP and HTTP is set. Its JSON is the spec of a
// node task of kind PROBE, within narrower bounds than a task's.
type Probe struct {
	// Exec runs a command in the member; exit code 0 passes.
	Exec *nodetask.ExecProbe `json:"exec,omitempty"`
	// TCP connects to a port.
	TCP *nodetask.TCPProbe `json:"tcp,omitempty"`
	// HTTP requests a path by GET.
	HTTP *nodetask.HTTPProbe `json:"http,omitempty"`
	// Attempts is how often it is tried, 1 to 120.
	Attempts int `json:"attempts"`
	// IntervalSeconds is the pause between tries, 1 to 60.
	IntervalSeconds int `json:"intervalSeconds"`
	// TimeoutSeconds bounds one try, 1 to 60.
	TimeoutSeconds int `json:"timeoutSeconds"`
}

// UsageDimension is something the app's use is metered in.
type UsageDimension struct {
	// Name is unique in the manifest.
	Name string `json:"name"`
	// Unit is the unit of a record's quantity.
	Unit string `json:"unit"`
	// Kind is "app", which is also what is meant without it, or "showback": shown, and priced nowhere.
	Kind string `json:"kind,omitempty"`
	// Description is for people, at most 200 characters.
	Description string `json:"description,omitempty"`
}

// Component finds a component by its key.
func (m *Manifest) Component(key string) (Component, bool) {
	for _, component := range m.Components {
		if component.Key == key {
			return component, true
		}
	}
	return Component{}, false
}

// Action finds an action by its name.
func (m *Manifest) Action(name string) (Action, bool) {
	for _, action := range m.Actions {
		if action.Name == name {
			return action, true
		}
	}
	return Action{}, false
}

// families are the permission families that a manifest may name, and suffixes the keys that each has. The
// catalogue of keys holds each of them in each family, which a test there proves.
var (
	families = []string{"apps", "scheduler"}
	suffixes = []string{
		"catalog.read", "instance.read", "instance.create", "instance.update", "instance.delete",
		"queue.submit", "queue.read", "queue.cancel", "node.read", "node.operate",
		"member.add", "member.remove", "member.replace", "member.recover", "member.logs", "member.exec",
	}
)

// Families lists the permission families that a manifest may name.
func Families() []string { return slices.Clone(families) }

// FamilySuffixes lists what may follow a family's name in a permission key.
func FamilySuffixes() []string { return slices.Clone(suffixes) }

// familyKeys lists the permission keys of a family.
func familyKeys(family string) []string {
	keys := FamilySuffixes()
	for i, suffix := range keys {
		keys[i] = family + "." + suffix
	}
	return keys
}

// inFamily reports whether the key is one of the family's.
func inFamily(family, key string) bool {
	suffix, ok := strings.CutPrefix(key, family+".")
	return ok && slices.Contains(suffixes, suffix)
}
