package graph

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/manifest"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph/generated/model"
)

// within reads one member of a manifest's document; the document is parsed again for each field
// asked for, and only as far as that member.
func within(row *db.Manifest, name string, into any) error {
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

func componentSpecs(components []manifest.Component) []*model.ComponentSpec {
	out := make([]*model.ComponentSpec, len(components))
	for i, c := range components {
		out[i] = &model.ComponentSpec{Key: c.Key, DisplayName: c.DisplayName, Min: c.Min, Max: c.Max, Default: c.Default}
	}
	return out
}

func actionSpecs(actions []manifest.Action) []*model.ActionSpec {
	out := make([]*model.ActionSpec, len(actions))
	for i, a := range actions {
		out[i] = &model.ActionSpec{
			Name: a.Name, DisplayName: a.DisplayName, PermissionKey: a.PermissionKey, Risk: lifecycle.ActionRisk(strings.ToUpper(a.Risk)),
			InputSchema: a.InputSchema, OutputSchema: a.OutputSchema,
		}
	}
	return out
}
