package trial

import (
	"bytes"
	_ "embed"
	"fmt"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/internal/text"
)

// contractSchema is docs/adapter-contract/schema.json, which a test of sdk/adapter writes here too.
//
//go:embed schema.json
var contractSchema []byte

// shapes returns the compiled schemas of the answers that are held against them, by name.
var shapes = sync.OnceValues(func() (map[string]*jsonschema.Schema, error) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(contractSchema))
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(noLoader{})
	if err := compiler.AddResource("suite:contract", document); err != nil {
		return nil, err
	}
	compiled := make(map[string]*jsonschema.Schema)
	for _, name := range []string{"Description", "Status", "Observation", "PlanAnswer", "UsagePage"} {
		if compiled[name], err = compiler.Compile("suite:contract#/$defs/" + name); err != nil {
			return nil, err
		}
	}
	return compiled, nil
})

// Shape requires that an answer is valid against a definition of the contract's JSON Schema: required fields are there,
// words are those of the contract. An optional field may be null, which says as much as its absence.
func (c *Check) Shape(answer Reply, name string) {
	compiled, err := shapes()
	if err != nil {
		c.NotRun("the suite could not read its own schema: %v", err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(answer.Body))
	c.Require(err == nil, "the answer is not JSON: %v", err)
	if compiled[name].Validate(value) == nil {
		return
	}
	err = compiled[name].Validate(withoutNull(value))
	if err == nil {
		return
	}
	wrong := strings.Join(strings.Fields(fmt.Sprint(err)), " ")
	c.Fail("the answer breaks the definition %s of the contract's schema: %s", name, text.Clip(wrong, 400))
}

// withoutNull returns a value without the fields that are null.
func withoutNull(value any) any {
	switch value := value.(type) {
	case []any:
		list := make([]any, len(value))
		for i := range value {
			list[i] = withoutNull(value[i])
		}
		return list
	case map[string]any:
		object := make(map[string]any, len(value))
		for key, field := range value {
			if field != nil {
				object[key] = withoutNull(field)
			}
		}
		return object
	}
	return value
}
