package adapter

import (
	"fmt"
	"slices"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"
)

// breakingChanges lists what in the document of today breaks an adapter or a platform that was
// built against the published one: anything removed, retyped or newly demanded of a sender.
func breakingChanges(published, today *openapi3.T) []string {
	var broken []string
	report := func(format string, args ...any) { broken = append(broken, fmt.Sprintf(format, args...)) }
	for path, was := range published.Paths.Map() {
		is := today.Paths.Value(path)
		for method, before := range was.Operations() {
			if is == nil || is.GetOperation(method) == nil {
				report("%s %s is gone", method, path)
				continue
			}
			operationBreaks(method+" "+path, before, is.GetOperation(method), report)
		}
	}
	for name, was := range published.Components.Schemas {
		is, ok := today.Components.Schemas[name]
		if !ok {
			report("schema %s is gone", name)
			continue
		}
		schemaBreaks(name, was.Value, is.Value, report)
	}
	return broken
}

func operationBreaks(name string, was, is *openapi3.Operation, report func(string, ...any)) {
	for status := range was.Responses.Map() {
		if is.Responses.Value(status) == nil {
			report("%s no longer answers %s", name, status)
		}
	}
	for _, parameter := range was.Parameters {
		if is.Parameters.GetByInAndName(parameter.Value.In, parameter.Value.Name) == nil {
			report("%s lost parameter %s", name, parameter.Value.Name)
		}
	}
	for _, parameter := range is.Parameters {
		old := was.Parameters.GetByInAndName(parameter.Value.In, parameter.Value.Name)
		if parameter.Value.Required && (old == nil || !old.Required) {
			report("%s demands parameter %s", name, parameter.Value.Name)
		}
	}
	if is.RequestBody != nil && is.RequestBody.Value.Required && was.RequestBody == nil {
		report("%s demands a body", name)
	}
}

// schemaBreaks compares one schema. A field newly required is broken whichever side sends it: the
// sender of yesterday does not know it. So is one no longer required: its reader relies on it.
func schemaBreaks(name string, was, is *openapi3.Schema, report func(string, ...any)) {
	for _, value := range was.Enum {
		if !slices.Contains(is.Enum, value) {
			report("%s lost value %v", name, value)
		}
	}
	for field, property := range was.Properties {
		now, ok := is.Properties[field]
		if !ok {
			report("%s.%s is gone", name, field)
			continue
		}
		if schemaType(property) != schemaType(now) {
			report("%s.%s was %s and is %s", name, field, schemaType(property), schemaType(now))
		}
	}
	for _, field := range is.Required {
		if !slices.Contains(was.Required, field) {
			report("%s.%s is newly required", name, field)
		}
	}
	for _, field := range was.Required {
		if !slices.Contains(is.Required, field) {
			report("%s.%s is no longer certain", name, field)
		}
	}
}

func TestBreakingChangesAreNoticedAndAdditionsAreNot(t *testing.T) {
	t.Parallel()
	changes := map[string]func(*openapi3.T){
		"GET /v1/adapter is gone": func(d *openapi3.T) { d.Paths.Delete("/v1/adapter") },
		"PUT /v1/operations/{id} is gone": func(d *openapi3.T) {
			d.Paths.Value("/v1/operations/{id}").Put = nil
		},
		"GET /v1/adapter no longer answers 401": func(d *openapi3.T) {
			d.Paths.Value("/v1/adapter").Get.Responses.Delete("401")
		},
		"GET /v1/operations lost parameter wait": func(d *openapi3.T) {
			op := d.Paths.Value("/v1/operations").Get
			op.Parameters = op.Parameters[:1]
		},
		"GET /v1/operations demands parameter after": func(d *openapi3.T) {
			d.Paths.Value("/v1/operations").Get.Parameters[0].Value.Required = true
		},
		"schema Requester is gone": func(d *openapi3.T) {
			delete(d.Components.Schemas, "Requester")
		},
		"Dispatch.change is gone": func(d *openapi3.T) {
			delete(d.Components.Schemas["Dispatch"].Value.Properties, "change")
		},
		"Member.index was integer and is string": func(d *openapi3.T) { retype(d, "Member", "index", "string") },
		"Kind lost value instance.create": func(d *openapi3.T) {
			kinds := d.Components.Schemas["Kind"].Value
			kinds.Enum = kinds.Enum[1:]
		},
		"Dispatch.extra is newly required":   func(d *openapi3.T) { demand(d, "Dispatch", "extra") },
		"Dispatch.targets is newly required": func(d *openapi3.T) { demand(d, "Dispatch", "targets") },
		"CancelRequest.attempt is no longer certain": func(d *openapi3.T) {
			d.Components.Schemas["CancelRequest"].Value.Required = nil
		},
		"Status.state was State and is string": func(d *openapi3.T) { retype(d, "Status", "state", "string") },
		"Dispatch.members was array of Member and is string": func(d *openapi3.T) {
			retype(d, "Dispatch", "members", "string")
		},
	}
	published := loadContract(t, publishedFile)
	for want, change := range changes {
		changed := loadContract(t, publishedFile)
		change(changed)
		require.Contains(t, breakingChanges(published, changed), want)
	}
	added := loadContract(t, publishedFile)
	added.Components.Schemas["Dispatch"].Value.Properties["extra"] = openapi3.NewStringSchema().NewRef()
	kinds := added.Components.Schemas["Kind"].Value
	kinds.Enum = append(kinds.Enum, "instance.paint")
	require.Empty(t, breakingChanges(published, added))
}

func retype(d *openapi3.T, schema, field, typ string) {
	d.Components.Schemas[schema].Value.Properties[field] = (&openapi3.Schema{Type: &openapi3.Types{typ}}).NewRef()
}

func demand(d *openapi3.T, schema, field string) {
	value := d.Components.Schemas[schema].Value
	value.Required = append(value.Required, field)
}
