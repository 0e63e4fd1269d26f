package manifest

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
)

// full reads the manifest that uses every field.
func full(t testing.TB) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/full.json")
	require.NoError(t, err)
	return data
}

// changed is the full manifest with one piece of its text replaced; the piece must be there exactly once.
func changed(t testing.TB, old, replacement string) []byte {
	t.Helper()
	text := string(full(t))
	require.Equal(t, 1, strings.Count(text, old), "%s must stand once in the full manifest", old)
	return []byte(strings.Replace(text, old, replacement, 1))
}

func TestFullManifestParsesWithEveryField(t *testing.T) {
	t.Parallel()
	m, err := Parse(full(t))
	require.NoError(t, err)
	again, err := json.Marshal(m)
	require.NoError(t, err)
	require.JSONEq(t, string(full(t)), string(again), "a field is lost between reading and writing")
	head, ok := m.Component("head")
	require.True(t, ok)
	require.Equal(t, Component{Key: "head", DisplayName: "Head", Min: 1, Max: 1, Default: 1}, head)
	action, ok := m.Action("queue.submit")
	require.True(t, ok)
	require.Equal(t, "scheduler.queue.submit", action.PermissionKey)
	_, ok = m.Action("queue.fly")
	require.False(t, ok)
}

func TestSmallestManifestParses(t *testing.T) {
	t.Parallel()
	var m map[string]any
	require.NoError(t, json.Unmarshal(full(t), &m))
	for _, optional := range []string{"icon", "actions", "readiness", "secretPurposes", "usageDimensions",
		"runtimeProfile", "lifecycle", "runbooks", "docs"} {
		delete(m, optional)
	}
	data, err := json.Marshal(m)
	require.NoError(t, err)
	_, err = Parse(data)
	require.NoError(t, err)
}

// findings are manifests that are wrong in one place each, as what is replaced in a right one.
var findings = map[string]struct {
	old, replacement string
	code             fault.Code
	path             string
}{
	"unknown field": {`"docs": "# Demo"`, `"docs": "", "colour": "red"`, fault.UnknownField, "colour"},
	"unknown nested field": {`"key": "head",`, `"key": "head", "role": "x",`, fault.UnknownField,
		"components.0.role"},
	"field in other case": {`"app": "demo-cluster"`, `"app": "demo-cluster", "App": "x"`,
		fault.UnknownField, "App"},
	"missing field":           {`"adapter": "demo-controller",`, ``, fault.Required, "adapter"},
	"NUL in a text":           {`"docs": "# Demo"`, `"docs": "\u0000"`, fault.BadValue, "docs"},
	"NUL in a name":           {`"key": "head",`, `"key": "head", "a\u0000": 1,`, fault.BadValue, "components.0.a"},
	"member twice":            {`"app": "demo-cluster"`, `"app": "demo-cluster", "app": "x"`, fault.Duplicate, "app"},
	"other schema":            {`gpuaas.app/manifest/v1`, `gpuaas.app/manifest/v9`, fault.UnknownValue, "schema"},
	"bad slug":                {`"app": "demo-cluster"`, `"app": "Demo!"`, fault.BadValue, "app"},
	"version of two numbers":  {`1.2.3`, `1.2`, fault.BadValue, "version"},
	"version with zero ahead": {`1.2.3`, `01.2.3`, fault.BadValue, "version"},
	"bad kind": {`"artifactKind": "controller"`, `"artifactKind": "vm"`, fault.UnknownValue,
		"artifactKind"},
	"artifact by tag": {`@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"`, `:latest"`,
		fault.BadValue, "artifacts.0.ref"},
	"artifact of other digest": {`"digest": "sha256:0`, `"digest": "sha256:1`, fault.NotPinned, "artifacts.0.ref"},
	"unknown family": {`"permissionFamily": "scheduler"`, `"permissionFamily": "tenant"`, fault.UnknownValue,
		"permissionFamily"},
	"key of another family": {`"permissionKey": "scheduler.queue.submit"`, `"permissionKey": "apps.queue.submit"`,
		fault.KeyOutsideFamily, "actions.0.permissionKey"},
	"key of the platform": {`"permissionKey": "scheduler.queue.submit"`, `"permissionKey": "tenant.create"`,
		fault.KeyOutsideFamily, "actions.0.permissionKey"},
	"write behind a read key": {`"permissionKey": "scheduler.queue.submit"`, `"permissionKey": "scheduler.queue.read"`,
		fault.BadValue, "actions.0.permissionKey"},
	"unknown risk": {`"risk": "write"`, `"risk": "wild"`, fault.UnknownValue, "actions.0.risk"},
	"input that is no object": {`"inputSchema": {"type": "object",`, `"inputSchema": {"type": "string",`,
		fault.SchemaInvalid, "actions.0.inputSchema.type"},
	"schema that is none": {`"outputSchema": {"type": "object"}`, `"outputSchema": {"type": "thing"}`,
		fault.SchemaInvalid, "actions.0.outputSchema"},
	"schema with bad pattern": {`^[a-z]+$`, `^[a-z`, fault.SchemaInvalid, "configSchema"},
	"schema from elsewhere": {`"$ref": "#/$defs/limits"`, `"$ref": "https://example.com/x.json"`, fault.SchemaInvalid,
		"configSchema"},
	"schema from a file": {`"$ref": "#/$defs/limits"`, `"$ref": "file:///etc/passwd"`, fault.SchemaInvalid,
		"configSchema"},
	"schema without target": {`"$ref": "#/$defs/limits"`, `"$ref": "#/$defs/nothing"`, fault.SchemaInvalid,
		"configSchema"},
	"recursive schema": {`"users": {"type": "array", "items": {"type": "string"}`,
		`"users": {"type": "array", "items": {"$ref": "#/$defs/limits"}`, fault.SchemaInvalid, "configSchema"},
	"schema of another draft": {`https://json-schema.org/draft/2020-12/schema`,
		`http://json-schema.org/draft-07/schema#`, fault.SchemaInvalid, "configSchema"},
	"schema with a base": {`"additionalProperties": false,`, `"$id": "https://example.com/",`, fault.SchemaInvalid,
		"configSchema"},
	"min above max": {`"min": 1, "max": 1`, `"min": 2, "max": 1`, fault.BadValue, "components.0.min"},
	"default above max": {`"max": 8, "default": 2`, `"max": 8, "default": 9`, fault.BadValue,
		"components.1.default"},
	"too many members": {`"max": 8`, `"max": 1001`, fault.BadValue, "components.1.max"},
	"component twice":  {`"key": "worker"`, `"key": "head"`, fault.Duplicate, "components.1.key"},
	"probe of no component": {`"componentKey": "head"`, `"componentKey": "tail"`, fault.UnknownComponent,
		"readiness.0.componentKey"},
	"probe twice":           {`"name": "serves"`, `"name": "listens"`, fault.Duplicate, "readiness.2.name"},
	"probe without a check": {`"tcp": {"port": 6818},`, ``, fault.BadValue, "readiness.1.probe"},
	"probe with two checks": {`"tcp": {"port": 6818},`, `"tcp": {"port": 6818}, "exec": {"command": ["a"]},`,
		fault.BadValue, "readiness.1.probe"},
	"probe of port 0": {`"port": 6818`, `"port": 0`, fault.BadValue, "readiness.1.probe.tcp.port"},
	"unknown shape": {`["baremetal", "gpu_slice"]`, `["cloud"]`, fault.UnknownValue,
		"compatibility.requires_capacity_shape.0"},
	"no shape": {`["baremetal", "gpu_slice"]`, `[]`, fault.BadValue,
		"compatibility.requires_capacity_shape"},
	"unknown span":          {`"multi_allocation"`, `"galaxy"`, fault.UnknownValue, "compatibility.network_span"},
	"icon that is a script": {`data:image/png;base64,iVBORw0KGgo=`, `javascript:alert(1)`, fault.BadValue, "icon"},
	"purpose twice":         {`["join.token"]`, `["a", "a"]`, fault.Duplicate, "secretPurposes"},
	"dimension twice": {`[{"name": "job.seconds", "unit": "second"}]`,
		`[{"name": "a", "unit": "b"}, {"name": "a", "unit": "c"}]`, fault.Duplicate, "usageDimensions.1.name"},
	"number beyond reason": {`"max": 8`, `"max": 1e999999999`, fault.BadValue, "components.1.max"},
	"number below reason": {`"minimum": 1`, `"multipleOf": 1e-999999999`, fault.BadValue,
		"configSchema.properties.workers.multipleOf"},
	"nested too deep": {`{"image": "demo"}`, `{"a": ` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}`,
		fault.TooDeep, "runtimeProfile.a" + strings.Repeat(".0", 31)},
	"lifecycle in part": {`"rollback": {"mode": "in_place", "keepsWork": true},`, ``, fault.Required,
		"lifecycle.rollback"},
	"unknown way to upgrade": {`"mode": "rolling"`, `"mode": "magic"`, fault.UnknownValue, "lifecycle.upgrade.mode"},
	"unknown way to delete":  {`"mode": "graceful"`, `"mode": "rolling"`, fault.UnknownValue, "lifecycle.delete.mode"},
	"work kept or not unsaid": {`"delete": {"mode": "graceful", "keepsWork": false}`, `"delete": {"mode": "graceful"}`,
		fault.Required, "lifecycle.delete.keepsWork"},
	"upgrade from nonsense": {`[">=1.0 <2"]`, `[">=1.0 <2", "newest"]`, fault.BadValue, "lifecycle.upgrade.from.1"},
	"rollback from versions": {`"mode": "in_place",`, `"mode": "in_place", "from": ["1"],`, fault.UnknownField,
		"lifecycle.rollback.from"},
	"runbook without address": {`"title": "When nothing starts", "url": "https://runbooks.example/start"`,
		`"title": "When nothing starts"`, fault.Required, "runbooks.0.url"},
	"runbook that is a script": {`https://runbooks.example/start`, `javascript:alert(1)`, fault.BadValue,
		"runbooks.0.url"},
	"runbook twice": {`https://runbooks.example/start`, `https://runbooks.example/slow?from=manifest`,
		fault.Duplicate, "runbooks.1.url"},
	"triage by nothing known": {`"by": "event"`, `"by": "guess"`, fault.UnknownValue, "runbooks.1.triage.1.by"},
	"triage without a step": {`"do": "Ask for triage of the id."`, `"do": ""`, fault.BadValue,
		"runbooks.1.triage.0.do"},
	"blob with a fragment": {`registry.example:5000/demo/controller@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef`, `https://blobs.example/a#b`, fault.BadValue, "artifacts.0.ref"},
	"blob in a file":       {`registry.example:5000/demo/controller@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef`, `file:///etc/passwd`, fault.BadValue, "artifacts.0.ref"},
	"text after the end":   {"\"docs\": \"# Demo\"\n}", "\"docs\": \"\"\n} {}", fault.BadValue, ""},
	"cut short":            {"\"docs\": \"# Demo\"\n}", `"docs": `, fault.BadValue, "docs"},
}

func TestEveryFindingNamesItsCodeAndPath(t *testing.T) {
	t.Parallel()
	for name, c := range findings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse(changed(t, c.old, c.replacement))
			require.True(t, fault.Is(err, fault.ManifestInvalid), "got %v", err)
			found, _ := fault.As(err)
			var seen []string
			for _, reason := range found.Reasons {
				seen = append(seen, string(reason.Code)+" "+reason.Path)
				require.NotEmpty(t, reason.Message)
				require.True(t, reason.Code.Known(), reason.Code)
			}
			require.Contains(t, seen, string(c.code)+" "+c.path)
		})
	}
}

func TestOversizedManifestIsRefusedUnread(t *testing.T) {
	t.Parallel()
	_, err := Parse([]byte(strings.Repeat(" ", MaxDocument+1)))
	found, _ := fault.As(err)
	require.Equal(t, fault.TooLong, found.Reasons[0].Code)
}

func TestSchemaThatExplodesWhenWrittenOutIsRefused(t *testing.T) {
	t.Parallel()
	defs := `"d0": {"type": "string"}`
	for i := 1; i <= 20; i++ {
		name, below := string(rune('a'+i)), "d0"
		if i > 1 {
			below = string(rune('a' + i - 1))
		}
		defs += `, "` + name + `": {"allOf": [{"$ref": "#/$defs/` + below + `"}, {"$ref": "#/$defs/` + below + `"}]}`
	}
	_, reason := compile(json.RawMessage(`{"type": "object", "properties": {"x": {"$ref": "#/$defs/u"}}, "$defs": {`+defs+
		`}}`), "s")
	require.NotNil(t, reason)
	require.Contains(t, reason.Message, "subschemas")
}

func TestFieldsMayBeNamedLikeKeywords(t *testing.T) {
	t.Parallel()
	_, reason := compile(json.RawMessage(`{"type": "object", "properties": {"$id": {"type": "string"}, "$ref": {"type": "string"}}, "default": {"$id": 1}}`), "s")
	require.Nil(t, reason)
}

func TestFamiliesAndSuffixesAreCopies(t *testing.T) {
	t.Parallel()
	Families()[0], FamilySuffixes()[0] = "x", "x"
	DocumentSchema()[0] = 'x'
	require.Equal(t, "apps", Families()[0])
	require.Equal(t, "catalog.read", FamilySuffixes()[0])
	require.True(t, json.Valid(DocumentSchema()))
}

// FuzzParse proves that no document makes the parser fail in another way than by a MANIFEST_INVALID with
// bounded reasons, and that what it accepts can be read again.
func FuzzParse(f *testing.F) {
	f.Add(full(f))
	f.Add([]byte(`{}`))
	f.Add([]byte(`{"a": 1e308, "b": [null, true], "c": "\ud800"}`))
	f.Add([]byte(strings.Repeat(`{"a":`, 40)))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Parse(data)
		if err != nil {
			found, ok := fault.As(err)
			require.True(t, ok)
			require.Equal(t, fault.ManifestInvalid, found.Code)
			require.NotEmpty(t, found.Reasons)
			require.LessOrEqual(t, len(found.Reasons), fault.MaxReasons)
			return
		}
		text, err := json.Marshal(m)
		require.NoError(t, err)
		require.NotEmpty(t, text)
		Compatible(m, nil, nil)
		_, err = ApplyDefaults(m.ConfigSchema, nil)
		require.NoError(t, err)
	})
}
