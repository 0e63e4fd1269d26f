package adapter

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite docs/adapter-contract/schema.json")

const (
	schemaFile = "../../docs/adapter-contract/schema.json"
	// The conformance suite holds answers against the schema, and carries it.
	suiteSchemaFile = "../adaptertest/conformance/internal/trial/schema.json"
	schemaID        = "https://gpuaas.app/adapter-contract/v1/schema.json"
)

// The JSON Schema of the bodies is written from the OpenAPI document, which the types are held against.
func TestSchemaOfTheBodiesIsThatOfTheDocument(t *testing.T) {
	t.Parallel()
	want := jsonSchema(t)
	for _, file := range []string{schemaFile, suiteSchemaFile} {
		if *update {
			require.NoError(t, os.WriteFile(file, want, 0o644))
		}
		got, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, string(want), string(got),
			"write it again: go test ./sdk/adapter -run SchemaOfTheBodies -update")
	}
}

// jsonSchema returns the document's schemas as one JSON Schema with a definition for each.
func jsonSchema(t *testing.T) []byte {
	t.Helper()
	document := loadContract(t, contractFile)
	raw, err := json.Marshal(document.Components.Schemas)
	require.NoError(t, err)
	var loose map[string]any
	require.NoError(t, json.Unmarshal(raw, &loose))
	schema := map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": schemaID,
		"title":       "GPUaaS adapter contract " + document.Info.Version,
		"description": "The bodies of the adapter contract, one definition each. Written from openapi.yaml.",
		"$defs":       inDraft2020(loose),
	}
	out := &bytes.Buffer{}
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	require.NoError(t, encoder.Encode(schema))
	return out.Bytes()
}

// inDraft2020 returns a node of an OpenAPI 3.0 schema as JSON Schema 2020-12 has it: references to definitions, and
// null as a type.
func inDraft2020(node any) any {
	switch node := node.(type) {
	case []any:
		for i := range node {
			node[i] = inDraft2020(node[i])
		}
	case map[string]any:
		for key := range node {
			node[key] = inDraft2020(node[key])
		}
		if to, ok := node["$ref"].(string); ok {
			node["$ref"] = strings.Replace(to, "#/components/schemas/", "#/$defs/", 1)
		}
		if nullable, _ := node["nullable"].(bool); nullable {
			delete(node, "nullable")
			return orNull(node)
		}
	}
	return node
}

func orNull(node map[string]any) map[string]any {
	if kind, ok := node["type"].(string); ok {
		node["type"] = []any{kind, "null"}
		return node
	}
	either := map[string]any{"anyOf": []any{map[string]any{"allOf": node["allOf"]}, map[string]any{"type": "null"}}}
	if text, ok := node["description"]; ok {
		either["description"] = text
	}
	return either
}

func TestBodiesAreHeldToTheirSchema(t *testing.T) {
	t.Parallel()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(jsonSchema(t)))
	require.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	require.NoError(t, compiler.AddResource(schemaID, document))
	structs, enums := wireTypes()
	for name := range structs {
		_, err := compiler.Compile(schemaID + "#/$defs/" + name)
		require.NoError(t, err, name)
	}
	for name := range enums {
		_, err := compiler.Compile(schemaID + "#/$defs/" + name)
		require.NoError(t, err, name)
	}
	status, err := compiler.Compile(schemaID + "#/$defs/Status")
	require.NoError(t, err)
	for body, valid := range map[string]bool{
		`{"operationId":"op_1","attempt":1,"state":"running","phase":"","percent":0,"message":"","members":[]}`:   true,
		`{"operationId":"op_1","attempt":1,"state":"running","phase":"","percent":0,"members":[]}`:                false,
		`{"operationId":"op_1","attempt":1,"state":"ok","phase":"","percent":0,"message":"","members":[]}`:        false,
		`{"operationId":"op_1","attempt":1,"state":"running","phase":"","percent":0,"message":"","members":null}`: false,
	} {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
		require.NoError(t, err)
		require.Equal(t, valid, status.Validate(value) == nil, body)
	}
}
