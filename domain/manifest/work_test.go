package manifest_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/manifest"
)

// working is the full manifest with a declaration of work and four actions that fit it, after a change.
func working(t *testing.T, change func(work, cancel, list map[string]any)) []byte {
	t.Helper()
	raw, err := os.ReadFile("testdata/full.json")
	require.NoError(t, err)
	var document map[string]any
	require.NoError(t, json.Unmarshal(raw, &document))
	family := document["permissionFamily"].(string)
	action := func(name, risk, key, in, out string) map[string]any {
		return map[string]any{"name": name, "displayName": name, "risk": risk, "permissionKey": family + key,
			"inputSchema": json.RawMessage(in), "outputSchema": json.RawMessage(out)}
	}
	const id = `{"type": "object", "required": ["run"], "properties": {"run": {"type": "string"}}}`
	cancel := action("runs.stop", "destructive", ".queue.cancel", id, `{"type": "object"}`)
	list := action("runs.list", "read", ".queue.read",
		`{"type": "object", "properties": {"limit": {"type": "integer"}}}`,
		`{"type": "object", "properties": {"runs": {"type": "array", "items": {"type": "object",
			"properties": {"run": {"type": "integer"}, "state": {"type": "string"}}}}}}`)
	work := map[string]any{
		"title": "Runs", "kind": "run",
		"list": map[string]any{"action": "runs.list", "items": "runs", "id": "run", "state": "state",
			"columns": []string{"run", "state"}, "ended": []string{"DONE"}},
		"output": map[string]any{"action": "runs.output", "id": "run", "text": "text"},
		"cancel": map[string]any{"action": "runs.stop", "id": "run"},
		"submit": map[string]any{"action": "runs.begin", "id": "run"},
	}
	document["work"] = work
	change(work, cancel, list)
	document["actions"] = append(document["actions"].([]any), cancel, list,
		action("runs.output", "read", ".queue.read", id,
			`{"type": "object", "properties": {"text": {"type": "string"}}}`),
		action("runs.begin", "write", ".queue.submit", `{"type": "object"}`, id))
	raw, err = json.Marshal(document)
	require.NoError(t, err)
	return raw
}

func TestWorkIsWhatItsActionsAnswer(t *testing.T) {
	t.Parallel()
	m, err := manifest.Parse(working(t, func(_, _, _ map[string]any) {}))
	require.NoError(t, err)
	require.Equal(t, "Runs", m.Work.Title)
	require.Equal(t, manifest.WorkVerb{Action: "runs.stop", ID: "run"}, *m.Work.Cancel)
	part := func(work map[string]any, name string) map[string]any { return work[name].(map[string]any) }
	for path, change := range map[string]func(work, cancel, list map[string]any){
		"work.list.action": func(work, _, _ map[string]any) { part(work, "list")["action"] = "runs.none" },
		"work.list.items":  func(work, _, _ map[string]any) { part(work, "list")["items"] = "none" },
		"work.list.id":     func(work, _, _ map[string]any) { part(work, "list")["id"] = "none" },
		"work.list.state":  func(work, _, _ map[string]any) { part(work, "list")["state"] = "none" },
		"work.list.columns.1": func(work, _, _ map[string]any) {
			part(work, "list")["columns"] = []string{"run", "none"}
		},
		"work.output.action": func(work, _, _ map[string]any) { part(work, "output")["action"] = "runs.begin" },
		"work.output.id":     func(work, _, _ map[string]any) { part(work, "output")["id"] = "none" },
		"work.output.text":   func(work, _, _ map[string]any) { part(work, "output")["text"] = "none" },
		"work.cancel.action": func(work, _, _ map[string]any) { part(work, "cancel")["action"] = "runs.list" },
		"work.cancel.id": func(_, cancel, _ map[string]any) {
			cancel["inputSchema"] = json.RawMessage(`{"type": "object", "required": ["run", "reason"],
				"properties": {"run": {"type": "string"}}}`)
		},
		"work.submit.id": func(work, _, _ map[string]any) { part(work, "submit")["id"] = "none" },
	} {
		_, err := manifest.Parse(working(t, change))
		found, ok := fault.As(err)
		require.True(t, ok, path)
		require.Len(t, found.Reasons, 1, path)
		require.Equal(t, path, found.Reasons[0].Path)
		require.Equal(t, fault.BadValue, found.Reasons[0].Code, path)
	}
	_, err = manifest.Parse(working(t, func(_, cancel, _ map[string]any) {
		cancel["inputSchema"] = json.RawMessage(
			`{"type": "object", "properties": {"run": {"type": ["string", "null"]}}}`)
	}))
	require.ErrorContains(t, err, "the manifest is not valid")
}

// The platform lists work for people who give no input, and reads a table of the objects that the action answers.
func TestTheListOfWorkNeedsNoInputAndHasObjects(t *testing.T) {
	t.Parallel()
	answers := func(field string) string { return `{"type": "object", "properties": {"runs": ` + field + `}}` }
	for _, c := range []struct{ field, schema, path string }{
		{"inputSchema", `{"type": "object", "required": ["queue"]}`, "work.list.action"},
		{"outputSchema", answers(`{"type": "array"}`), "work.list.items"},
		{"outputSchema", answers(`{"type": "array", "items": {"type": "string"}}`), "work.list.items"},
		{"outputSchema", answers(`{"type": "string", "items": {"type": "object",
			"properties": {"run": {"type": "integer"}, "state": {"type": "string"}}}}`), "work.list.items"},
	} {
		_, err := manifest.Parse(working(t, func(_, _, list map[string]any) {
			list[c.field] = json.RawMessage(c.schema)
		}))
		found, ok := fault.As(err)
		require.True(t, ok, c.schema)
		require.Len(t, found.Reasons, 1, c.schema)
		require.Equal(t, c.path, found.Reasons[0].Path, c.schema)
	}
}
