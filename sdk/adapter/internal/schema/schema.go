package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/gpuaas/app-platform/sdk/adapter/contract"
	"github.com/gpuaas/app-platform/sdk/adapter/internal/wire"
)

// Schema is a compiled JSON Schema (draft 2020-12 unless it says otherwise). References to other
// documents are refused: nothing is loaded from disk or network.
type Schema struct{ compiled *jsonschema.Schema }

type noLoader struct{}

// Load refuses: a schema must be whole in itself.
func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("reference to %s is not allowed", wire.Clip(url, 200))
}

// Compile reads a schema. One that refers to another document is refused.
func Compile(text string) (*Schema, error) {
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("schema is not JSON: %w", err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(noLoader{})
	const name = "gpuaas:schema"
	if err := compiler.AddResource(name, document); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	compiled, err := compiler.Compile(name)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return &Schema{compiled: compiled}, nil
}

// Check validates raw, where absent means an empty object. The error is an [contract.ErrorBody] with this
// code and the path of the first field at fault, beginning with prefix.
func (s *Schema) Check(raw json.RawMessage, code, prefix string) error {
	if wire.IsNull(raw) {
		raw = json.RawMessage("{}")
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return contract.ErrorBody{Code: code, Message: prefix + " is not JSON", Path: prefix}
	}
	err = s.compiled.Validate(value)
	if err == nil {
		return nil
	}
	path, text := firstCause(err)
	path = strings.TrimSuffix(prefix+"."+path, ".")
	return contract.ErrorBody{Code: code, Message: wire.Clip(path+": "+text, contract.MaxMessage), Path: path}
}

// firstCause walks down to the first leaf of a validation error.
func firstCause(err error) (path, text string) {
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return "", "does not match its schema"
	}
	for len(invalid.Causes) > 0 {
		invalid = invalid.Causes[0]
	}
	var parts strings.Builder
	for _, part := range invalid.InstanceLocation {
		if _, err := strconv.Atoi(part); err == nil {
			parts.WriteString("[" + part + "]")
			continue
		}
		if parts.Len() > 0 {
			parts.WriteByte('.')
		}
		parts.WriteString(part)
	}
	return parts.String(), invalid.ErrorKind.LocalizedString(message.NewPrinter(language.English))
}
