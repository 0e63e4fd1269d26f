package calls

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/internal/trial"
)

// Manifest returns the clause on the app's manifest.
func Manifest() trial.Clause {
	return trial.Clause{
		ID: "describe.manifest", Section: inDescribe, Needs: []string{"describe.valid", "describe.schemas"},
		Run: describeManifest,
		Rule: "the description agrees with the manifest: app, components, actions with their permission " +
			"keys, usage dimensions",
		Fix: "build the description from the manifest, or correct the wrong one; appctl manifest lint reports which " +
			"permission keys exist",
	}
}

// describeManifest holds the description against the manifest: the platform sends what the manifest allows, and shows
// and authorises by it.
func describeManifest(c *trial.Check) {
	if c.Options.Manifest == nil {
		c.Skip("no manifest is given to check the description against")
	}
	var manifest struct {
		App    string
		Family string `json:"permissionFamily"`
		adapter.AppInfo
	}
	err := json.Unmarshal(c.Options.Manifest, &manifest)
	c.Require(err == nil, "the manifest cannot be read: %v", err)
	if c.App.Slug != adapter.AnyApp {
		c.Require(manifest.App == c.App.Slug, "the manifest's app is %q, the description's %q", manifest.App,
			c.App.Slug)
	}
	for _, said := range c.App.Components {
		at := slices.IndexFunc(manifest.Components, func(m adapter.Component) bool { return m.Key == said.Key })
		c.Require(at >= 0, "the manifest has no component %q", said.Key)
		stated := manifest.Components[at]
		c.Require(stated.Min >= said.Min && stated.Max <= said.Max,
			"component %q may have %d to %d members in the manifest, and %d to %d in the description", said.Key,
			stated.Min,
			stated.Max, said.Min, said.Max)
	}
	for _, stated := range manifest.Actions {
		c.Require(strings.HasPrefix(stated.PermissionKey, manifest.Family+"."),
			"the action %s of the manifest needs %q, which is not a key of the family %q", stated.Name,
			stated.PermissionKey, manifest.Family)
		at := slices.IndexFunc(c.App.Actions, func(a adapter.Action) bool { return a.Name == stated.Name })
		c.Require(at >= 0, "the manifest has the action %q, but the description does not", stated.Name)
		wrong := wrongAction(c.App.Actions[at], stated)
		c.Require(wrong == "", "%s", wrong)
	}
	for _, stated := range manifest.UsageDimensions {
		known := slices.ContainsFunc(c.App.UsageDimensions, func(d adapter.UsageDimension) bool {
			return d.Name == stated.Name && d.Unit == stated.Unit
		})
		c.Require(known, "the manifest meters %q in %q, but the description does not", stated.Name, stated.Unit)
	}
}

// wrongAction returns how an action differs from that of the manifest; empty when it does not.
func wrongAction(said, stated adapter.Action) string {
	switch {
	case said.PermissionKey != stated.PermissionKey:
		return fmt.Sprintf("the action %s needs %q in the manifest, but %q in the description", said.Name,
			stated.PermissionKey, said.PermissionKey)
	case said.Risk != stated.Risk:
		return fmt.Sprintf("the action %s has the risk %q in the manifest, and %q in the description", said.Name,
			stated.Risk, said.Risk)
	case !sameSchema(said.InputSchema, stated.InputSchema):
		return fmt.Sprintf("the action %s has another inputSchema in the manifest", said.Name)
	case !sameSchema(said.OutputSchema, stated.OutputSchema):
		return fmt.Sprintf("the action %s has another outputSchema in the manifest", said.Name)
	}
	return ""
}

// sameSchema reports whether two schemas take the same values: the same JSON, texts for people apart. An absent one is
// null.
func sameSchema(one, other json.RawMessage) bool {
	var a, b any
	_ = json.Unmarshal(one, &a) // text that is not JSON fails another clause
	_ = json.Unmarshal(other, &b)
	return reflect.DeepEqual(bare(a), bare(b))
}

// texts are the keywords of a schema that only people read. subschemas are those whose members are named schemas, and
// values those that hold data.
var (
	texts      = []string{"title", "description", "$comment"}
	subschemas = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
	values     = []string{"const", "default", "enum", "examples"}
)

// bare returns a schema without its texts.
func bare(schema any) any {
	switch schema := schema.(type) {
	case []any:
		kept := make([]any, 0, len(schema))
		for _, each := range schema {
			kept = append(kept, bare(each))
		}
		return kept
	case map[string]any:
		kept := map[string]any{}
		for keyword, value := range schema {
			named, is := value.(map[string]any)
			switch {
			case slices.Contains(texts, keyword):
			case slices.Contains(values, keyword):
				kept[keyword] = value
			case is && slices.Contains(subschemas, keyword):
				kept[keyword] = bareEach(named)
			default:
				kept[keyword] = bare(value)
			}
		}
		return kept
	}
	return schema
}

// bareEach returns named schemas without their texts; a schema may have any name, also that of a keyword.
func bareEach(named map[string]any) map[string]any {
	kept := map[string]any{}
	for name, schema := range named {
		kept[name] = bare(schema)
	}
	return kept
}
