package manifest

import (
	"encoding/json"
	"strings"

	"github.com/gpuaas/app-platform/domain/fault"
)

// ApplyDefaults returns the configuration with every absent field that the schema has a default for, also in nested
// objects. An empty configuration counts as {}. Members come out sorted, so that equal configurations have equal
// bytes. It fails with CONFIG_INVALID when the configuration is not a JSON object within the bounds; it does not
// validate otherwise: ValidateConfig does, before or after.
func ApplyDefaults(schema, config json.RawMessage) (json.RawMessage, error) {
	if strings.TrimSpace(string(config)) == "" {
		config = json.RawMessage("{}")
	}
	value, reason := decode(config, MaxConfig, "config")
	if reason != nil {
		return nil, configInvalid(*reason)
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, configInvalid(fault.Reason{Code: fault.BadValue, Message: "must be an object", Path: "config"})
	}
	rules, reason := decode(schema, MaxDocument, "configSchema")
	if reason != nil {
		return nil, configInvalid(*reason)
	}
	root, _ := rules.(map[string]any)
	filler{root}.fill(root, object)
	filled, err := json.Marshal(object)
	if err != nil {
		return nil, fault.New(fault.ConfigInvalid, "the configuration cannot be written as JSON").Because(err)
	}
	if len(filled) > MaxConfig {
		return nil, configInvalid(fault.Reason{Code: fault.TooLong, Message: "is too long with its defaults",
			Path: "config"})
	}
	return filled, nil
}

// configInvalid is the fault with its one reason.
func configInvalid(reason fault.Reason) *fault.Fault {
	return fault.New(fault.ConfigInvalid, "the configuration does not fit the app's schema").With(reason)
}

// filler fills in the defaults of a schema, whose references are to the root's $defs.
type filler struct{ root map[string]any }

// fill adds what is absent. The recursion ends with the object: only fields that are there are entered.
func (f filler) fill(schema, object map[string]any) {
	schema = f.resolve(schema)
	properties, _ := schema["properties"].(map[string]any)
	for name, raw := range properties {
		rule, ok := raw.(map[string]any)
		if !ok {
			continue // true or false: any value or none, and no default
		}
		rule = f.resolve(rule)
		if _, given := object[name]; !given {
			if value, has := rule["default"]; has {
				object[name] = clone(value)
			}
		}
		if nested, is := object[name].(map[string]any); is {
			f.fill(rule, nested)
		}
	}
}

// resolve follows references to the schema they name; keywords beside a $ref, as a default of its own, come first.
func (f filler) resolve(schema map[string]any) map[string]any {
	for range MaxDepth { // a schema that Parse accepted is not recursive; the bound serves those it did not see
		ref, _ := schema["$ref"].(string)
		name, ok := strings.CutPrefix(ref, "#/$defs/")
		if !ok {
			break
		}
		defs, _ := f.root["$defs"].(map[string]any)
		target, _ := defs[name].(map[string]any)
		schema = merge(target, schema)
	}
	return schema
}

// merge is target with the members of schema over it, less schema's $ref.
func merge(target, schema map[string]any) map[string]any {
	merged := make(map[string]any, len(target)+len(schema))
	for name, value := range schema {
		if name != "$ref" {
			merged[name] = value
		}
	}
	for name, value := range target {
		if _, own := merged[name]; !own {
			merged[name] = value
		}
	}
	return merged
}

// clone copies a decoded value, so that filling one place never changes the schema or another place.
func clone(value any) any {
	switch value := value.(type) {
	case map[string]any:
		copied := make(map[string]any, len(value))
		for name, member := range value {
			copied[name] = clone(member)
		}
		return copied
	case []any:
		copied := make([]any, len(value))
		for i, element := range value {
			copied[i] = clone(element)
		}
		return copied
	}
	return value
}
