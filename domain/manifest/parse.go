package manifest

import (
	"encoding/json"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/mod/semver"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/policy"
)

// Parse reads and lints a manifest document of at most MaxDocument bytes. It fails with MANIFEST_INVALID and a
// reason for every finding, each with its path; a field that a manifest does not have is a finding too.
func Parse(data []byte) (*Manifest, error) {
	value, reason := decode(data, MaxDocument, "")
	if reason != nil {
		return nil, invalid(*reason)
	}
	shape, err := documentShape()
	if err != nil {
		return nil, fault.From(err)
	}
	if reasons := check(shape, value, ""); len(reasons) > 0 {
		return nil, invalid(reasons...)
	}
	var m Manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, invalid(fault.Reason{Code: fault.BadValue, Message: "cannot be read as a manifest"}).Because(err)
	}
	m.complete()
	if reasons := lint(&m); len(reasons) > 0 {
		return nil, invalid(reasons...)
	}
	return &m, nil
}

// Stored reads a document that was linted when it was published, and does not lint it again: what is stored stays
// readable when the rules change.
func Stored(document []byte) (*Manifest, error) {
	m := &Manifest{}
	if err := json.Unmarshal(document, m); err != nil {
		return nil, fault.New(fault.Internal, "a stored manifest cannot be read").Because(err)
	}
	m.complete()
	return m, nil
}

// complete states what the document leaves out.
func (m *Manifest) complete() {
	if m.Compatibility.NetworkSpan == "" {
		m.Compatibility.NetworkSpan = spanOf(m.Compatibility.RequiresCapacityShape)
	}
}

// invalid is the fault with its reasons.
func invalid(reasons ...fault.Reason) *fault.Fault {
	return fault.New(fault.ManifestInvalid, "the manifest is not valid").With(reasons...)
}

// documentShape is the compiled schema of the document itself, compiled at the first use.
var documentShape = sync.OnceValues(func() (*jsonschema.Schema, error) {
	compiled, reason := compile(documentSchema, "")
	if reason != nil {
		return nil, fault.New(fault.Internal, "the schema of manifests does not compile").With(*reason)
	}
	return compiled, nil
})

// linter gathers findings.
type linter struct{ reasons []fault.Reason }

// add notes a finding.
func (l *linter) add(code fault.Code, path, text string) {
	l.reasons = append(l.reasons, fault.Reason{Code: code, Message: text, Path: path})
}

// unique reports every value that a list holds twice; at returns a value's path.
func (l *linter) unique(count int, value func(int) string, at func(int) string) {
	seen := make(map[string]bool, count)
	for i := range count {
		if seen[value(i)] {
			l.add(fault.Duplicate, at(i), "is given twice")
		}
		seen[value(i)] = true
	}
}

// lint checks the parts of a manifest, whose shape is right, against each other.
func lint(m *Manifest) []fault.Reason {
	l := &linter{}
	if !semver.IsValid("v" + m.Version) { // the shape has made sure of its three numbers
		l.add(fault.BadValue, "version", "must be a semantic version such as 1.2.3")
	}
	l.artifacts(m)
	l.components(m)
	l.schema(m.ConfigSchema, "configSchema", true)
	l.actions(m)
	l.work(m)
	l.readiness(m)
	l.network(m)
	l.endpoints(m)
	l.volumes(m)
	l.inspections(m)
	l.unique(len(m.UsageDimensions), func(i int) string { return m.UsageDimensions[i].Name },
		at("usageDimensions", "name"))
	l.profile(m)
	l.isolation(m)
	l.requires(m)
	l.promises(m)
	return l.reasons
}

// artifacts checks each reference against its digest. A blob's address does not hold its digest, which is only
// in the field beside it.
func (l *linter) artifacts(m *Manifest) {
	l.unique(len(m.Artifacts), func(i int) string { return m.Artifacts[i].Name }, at("artifacts", "name"))
	for i, artifact := range m.Artifacts {
		if !ofBlob(artifact.Ref) && !strings.HasSuffix(artifact.Ref, "@"+artifact.Digest) {
			l.add(fault.NotPinned, at("artifacts", "ref")(i), "must end in @ and the digest of this artifact")
		}
	}
}

// ofBlob says whether a reference is the address of a blob; every other one is of a registry.
func ofBlob(ref string) bool { return strings.Contains(ref, "://") }

// promises holds what the manifest declares of upgrades, and its runbooks.
func (l *linter) promises(m *Manifest) {
	l.unique(len(m.Runbooks), func(i int) string { return m.Runbooks[i].URL }, at("runbooks", "url"))
	if m.Lifecycle == nil {
		return
	}
	for i, constraint := range m.Lifecycle.Upgrade.From {
		if !policy.Constraint(constraint) {
			l.add(fault.BadValue, "lifecycle.upgrade.from."+strconv.Itoa(i),
				"must be a constraint on versions, such as >=1.2 <2")
		}
	}
}

// components checks the bounds of each component against each other.
func (l *linter) components(m *Manifest) {
	l.unique(len(m.Components), func(i int) string { return m.Components[i].Key }, at("components", "key"))
	for i, c := range m.Components {
		if c.Min > c.Max {
			l.add(fault.BadValue, at("components", "min")(i), "must not be more than max")
		}
		if c.Default < c.Min || c.Default > c.Max {
			l.add(fault.BadValue, at("components", "default")(i), "must be from min to max")
		}
	}
}

// riskRead is the risk of an action that changes nothing.
const riskRead = "read"

// actions checks each action against the permission family, and its risk against its key.
func (l *linter) actions(m *Manifest) {
	l.unique(len(m.Actions), func(i int) string { return m.Actions[i].Name }, at("actions", "name"))
	for i, action := range m.Actions {
		switch {
		case !inFamily(m.PermissionFamily, action.PermissionKey):
			l.outside(m, at("actions", "permissionKey")(i))
		case action.Risk != riskRead && strings.HasSuffix(action.PermissionKey, ".read"):
			l.add(fault.BadValue, at("actions", "permissionKey")(i),
				"an action that changes something must require more than a read key")
		}
		l.schema(action.InputSchema, at("actions", "inputSchema")(i), true)
		l.schema(action.OutputSchema, at("actions", "outputSchema")(i), false)
	}
}

// outside notes a permission key that is not of the manifest's family.
func (l *linter) outside(m *Manifest, path string) {
	l.add(fault.KeyOutsideFamily, path, "must be a permission key of the family "+m.PermissionFamily+": "+
		strings.Join(familyKeys(m.PermissionFamily), ", "))
}

// readiness checks each probe against the components.
func (l *linter) readiness(m *Manifest) {
	l.unique(len(m.Readiness), func(i int) string {
		return m.Readiness[i].ComponentKey + "\n" + m.Readiness[i].Name
	}, at("readiness", "name"))
	for i, probe := range m.Readiness {
		if _, ok := m.Component(probe.ComponentKey); !ok {
			l.add(fault.UnknownComponent, at("readiness", "componentKey")(i), "is not a component of this manifest")
		}
	}
}

// schema compiles a JSON Schema of the manifest; that of an input must be of objects.
func (l *linter) schema(schema json.RawMessage, path string, ofObjects bool) {
	value, reason := decode(schema, MaxDocument, path)
	if reason == nil {
		_, reason = compileValue(value, path)
	}
	if reason != nil {
		l.reasons = append(l.reasons, *reason)
		return
	}
	if object, _ := value.(map[string]any); ofObjects && object["type"] != "object" {
		l.add(fault.SchemaInvalid, join(path, "type"), `must be "object"`)
	}
}

// at makes the path of a field of the list's elements.
func at(list, field string) func(int) string {
	return func(i int) string { return list + "." + strconv.Itoa(i) + "." + field }
}
