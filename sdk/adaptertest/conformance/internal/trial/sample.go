package trial

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// Input returns a valid input of an action: the configured one, or one generated from its schema.
func (c *Check) Input(action adapter.Action) (json.RawMessage, bool) {
	if given, ok := c.Options.Inputs[action.Name]; ok {
		return given, true
	}
	value, ok := sample(action.InputSchema)
	if !ok {
		return nil, false
	}
	return c.Encode(value), true
}

// noLoader refuses references to other documents: nothing is loaded from disk or network.
type noLoader struct{}

// Load implements jsonschema.URLLoader.
func (noLoader) Load(string) (any, error) {
	return nil, errors.New("references to other documents are not allowed")
}

// Compile compiles a JSON Schema; null accepts only an empty object, as in the contract.
func Compile(raw json.RawMessage) (*jsonschema.Schema, error) {
	if len(raw) == 0 || bytes.Equal(bytes.TrimSpace(raw), []byte("null")) {
		raw = json.RawMessage(`{"type":"object","maxProperties":0}`)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("the schema is not JSON: %w", err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(noLoader{})
	if err := compiler.AddResource("suite:schema", document); err != nil {
		return nil, err
	}
	return compiler.Compile("suite:schema")
}

// Fits reports whether a value is valid against a schema.
func Fits(schema json.RawMessage, value any) bool {
	compiled, err := Compile(schema)
	if err != nil {
		return false
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return false
	}
	loose, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	return err == nil && compiled.Validate(loose) == nil
}

// sampleConfig returns a config that fits: an empty one if it fits, else one generated from the schema.
func sampleConfig(schema json.RawMessage) json.RawMessage {
	if value, ok := sample(schema); ok && !Fits(schema, map[string]any{}) {
		if raw, err := json.Marshal(value); err == nil {
			return raw
		}
	}
	return json.RawMessage(`{}`)
}

// sample returns an object that is valid against the schema; ok is false when it finds none.
func sample(schema json.RawMessage) (map[string]any, bool) {
	var node map[string]any
	if json.Unmarshal(schema, &node) != nil {
		node = map[string]any{}
	}
	value, ok := make1(node, 0).(map[string]any)
	if !ok {
		value = map[string]any{}
	}
	return value, Fits(schema, value)
}

// make1 returns a value for one schema node, at most eight levels deep.
func make1(node map[string]any, depth int) any {
	if depth > 8 {
		return nil
	}
	for _, key := range []string{"const", "default"} {
		if value, ok := node[key]; ok {
			return value
		}
	}
	for _, key := range []string{"examples", "enum"} {
		if list, ok := node[key].([]any); ok && len(list) > 0 {
			return list[0]
		}
	}
	switch typeOf(node) {
	case "string":
		return strings.Repeat("a", max(1, int(number(node, "minLength"))))
	case "integer", "number":
		return max(number(node, "minimum"), 1)
	case "boolean":
		return true
	case "array":
		return makeArray(node, depth)
	case "null":
		return nil
	}
	return makeObject(node, depth)
}

func typeOf(node map[string]any) string {
	switch kind := node["type"].(type) {
	case string:
		return kind
	case []any:
		if len(kind) > 0 {
			first, _ := kind[0].(string)
			return first
		}
	}
	return "object"
}

func number(node map[string]any, key string) float64 {
	value, _ := node[key].(float64)
	return value
}

func makeArray(node map[string]any, depth int) []any {
	items, _ := node["items"].(map[string]any)
	list := []any{}
	for range min(int(number(node, "minItems")), 16) {
		list = append(list, make1(items, depth+1))
	}
	return list
}

// makeObject returns an object with the required properties.
func makeObject(node map[string]any, depth int) map[string]any {
	value := map[string]any{}
	properties, _ := node["properties"].(map[string]any)
	required, _ := node["required"].([]any)
	for _, name := range required {
		key, _ := name.(string)
		property, _ := properties[key].(map[string]any)
		value[key] = make1(property, depth+1)
	}
	return value
}

// Spoil returns an object that breaks the schema; ok is false when the schema accepts all that it
// tries.
func Spoil(schema json.RawMessage) (map[string]any, bool) {
	good, _ := sample(schema)
	var node struct {
		Properties map[string]map[string]any
		Required   []string
	}
	_ = json.Unmarshal(schema, &node) // a schema of another form has no properties to spoil
	tries := []map[string]any{with(good, "conformanceUnknownField", true)}
	for _, name := range node.Required {
		less := maps.Clone(good)
		delete(less, name)
		tries = append(tries, less)
	}
	for _, name := range slices.Sorted(maps.Keys(node.Properties)) {
		tries = append(tries, with(good, name, wrong(node.Properties[name])))
	}
	for _, value := range tries {
		if !Fits(schema, value) {
			return value, true
		}
	}
	return nil, false
}

func with(object map[string]any, key string, value any) map[string]any {
	more := maps.Clone(object)
	more[key] = value
	return more
}

// wrong returns a value of another type than the schema node's.
func wrong(node map[string]any) any {
	if typeOf(node) == "string" {
		return 7
	}
	return "conformance"
}

// Another returns an input that fits the schema as well and differs from the first.
func Another(schema, first json.RawMessage) (json.RawMessage, bool) {
	var value map[string]any
	var node struct{ Properties map[string]map[string]any }
	if len(first) == 0 || json.Unmarshal(first, &value) != nil || json.Unmarshal(schema, &node) != nil {
		return nil, false
	}
	for _, name := range slices.Sorted(maps.Keys(node.Properties)) {
		for _, other := range []any{"other", "b", float64(2), float64(3), false} {
			changed := with(value, name, other)
			raw, err := json.Marshal(changed)
			if err == nil && Fits(schema, changed) && fmt.Sprint(changed) != fmt.Sprint(value) {
				return raw, true
			}
		}
	}
	return nil, false
}
