// Package shape turns what services return into the generated types of the contract where the two differ.
package shape

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/manifest"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph/generated/model"
)

// Within decodes one member of a manifest's document. The document is parsed again for each selected field, and only
// that member is decoded.
func Within(row *db.Manifest, name string, into any) error {
	var document map[string]json.RawMessage
	if err := json.Unmarshal(row.Document, &document); err != nil {
		return err
	}
	raw, ok := document[name]
	if !ok || bytes.Equal(raw, []byte("null")) {
		return nil
	}
	return json.Unmarshal(raw, into)
}

// Components returns the components that a manifest declares.
func Components(components []manifest.Component) []*model.ComponentSpec {
	out := make([]*model.ComponentSpec, len(components))
	for i, c := range components {
		out[i] = &model.ComponentSpec{Key: c.Key, DisplayName: c.DisplayName, Min: c.Min, Max: c.Max,
			Default: c.Default}
	}
	return out
}

// ActionsOf returns the actions that a stored manifest declares.
func ActionsOf(stored *db.Manifest) ([]*model.ActionSpec, error) {
	document, err := manifest.Parse(stored.Document)
	if err != nil {
		return nil, err
	}
	return Actions(document.Actions), nil
}

// Actions returns actions as the contract shows them. A manifest spells risks in lower case.
func Actions(actions []manifest.Action) []*model.ActionSpec {
	out := make([]*model.ActionSpec, len(actions))
	for i, a := range actions {
		out[i] = &model.ActionSpec{
			Name: a.Name, DisplayName: a.DisplayName, PermissionKey: a.PermissionKey,
			Risk: lifecycle.ActionRisk(strings.ToUpper(a.Risk)), InputSchema: a.InputSchema,
			OutputSchema: a.OutputSchema,
		}
	}
	return out
}
