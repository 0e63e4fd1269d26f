package trial

import (
	"bytes"
	_ "embed"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/internal/text"
)

// contractSchema is docs/adapter-contract/schema.json, which a test of sdk/adapter writes here too.
//
//go:embed schema.json
var contractSchema []byte

// definitions are the schemas that answers are held against.
var definitions = []string{
	"Description", "Status", "OperationsPage", "CancelResult", "PlanAnswer", "Observation", "ActionResult", "UsagePage",
	"ErrorBody",
}

// answered returns the definition that the answer of a request must fit; empty for answers of which the contract
// defines no body.
func answered(l Letter, status int) string {
	path, _, _ := strings.Cut(l.Target, "?")
	switch {
	case status >= http.StatusBadRequest:
		return "ErrorBody"
	case status != http.StatusOK && status != http.StatusAccepted:
		return ""
	case path == adapter.AdapterPath:
		return "Description"
	case path == adapter.OperationsPath:
		return "OperationsPage"
	case path == adapter.PlansPath:
		return "PlanAnswer"
	case strings.HasPrefix(path, adapter.OperationsPath+"/") && strings.HasSuffix(path, "/cancel"):
		return "CancelResult"
	case strings.HasPrefix(path, adapter.OperationsPath+"/"):
		return "Status"
	case strings.Contains(path, "/actions/"):
		return "ActionResult"
	case strings.HasSuffix(path, "/usage"):
		return "UsagePage"
	case strings.HasPrefix(path, adapter.InstancePath("")):
		return "Observation"
	}
	return ""
}

// misfit returns why a body is not valid against a definition; empty where it is. An optional field may be null, which
// says as much as its absence.
func misfit(body []byte, name string) string {
	compiled, err := shapes()
	if err != nil {
		return "" // Shape reports it
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return "the answer is not JSON: " + err.Error()
	}
	if compiled[name].Validate(value) == nil {
		return ""
	}
	if err = compiled[name].Validate(withoutNull(value)); err == nil {
		return ""
	}
	wrong := strings.Join(strings.Fields(fmt.Sprint(err)), " ")
	return fmt.Sprintf("the answer breaks the definition %s of the contract's schema: %s", name, text.Clip(wrong, 400))
}

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
	for _, name := range definitions {
		if compiled[name], err = compiler.Compile("suite:contract#/$defs/" + name); err != nil {
			return nil, err
		}
	}
	return compiled, nil
})

// Shape requires that an answer is valid against a definition of the contract's JSON Schema: required fields are there,
// words are those of the contract.
func (c *Check) Shape(answer Reply, name string) {
	if _, err := shapes(); err != nil {
		c.NotRun("the suite could not read its own schema: %v", err)
	}
	if wrong := misfit(answer.Body, name); wrong != "" {
		c.Fail("%s", wrong)
	}
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
