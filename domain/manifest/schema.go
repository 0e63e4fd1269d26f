package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/gpuaas/app-platform/domain/fault"
)

// maxMessage bounds the text of one finding, in bytes.
const maxMessage = 300

// Validate checks a JSON document against a JSON Schema and returns what does not fit, at most fault.MaxReasons
// findings, each with its path below root. An empty document counts as {}. The schema must be one that Parse has
// accepted; any other that does not compile is itself the finding.
func Validate(schema, document json.RawMessage, root string) []fault.Reason {
	compiled, reason := compile(schema, root)
	if reason != nil {
		return []fault.Reason{*reason}
	}
	if len(bytes.TrimSpace(document)) == 0 {
		document = json.RawMessage("{}")
	}
	value, reason := decode(document, MaxConfig, root)
	if reason != nil {
		return []fault.Reason{*reason}
	}
	return check(compiled, value, root)
}

// ValidateConfig checks an instance's configuration against the manifest's schema; paths begin with "config".
func ValidateConfig(schema, config json.RawMessage) []fault.Reason {
	return Validate(schema, config, "config")
}

// check is what of a decoded value does not fit a compiled schema.
func check(schema *jsonschema.Schema, value any, root string) []fault.Reason {
	err := schema.Validate(value)
	if err == nil {
		return nil
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return []fault.Reason{{Code: fault.BadValue, Message: "cannot be checked against its schema", Path: root}}
	}
	reasons := leaves(nil, invalid, root)
	slices.SortStableFunc(reasons, func(a, b fault.Reason) int {
		return strings.Compare(a.Path, b.Path)
	})
	return slices.Compact(reasons[:min(len(reasons), fault.MaxReasons)])
}

// leaves appends the innermost findings. Alternatives (anyOf, oneOf) are one finding: their branches' would
// contradict each other.
func leaves(reasons []fault.Reason, invalid *jsonschema.ValidationError, root string) []fault.Reason {
	path := root
	for _, name := range invalid.InstanceLocation {
		path = join(path, name)
	}
	switch k := invalid.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf:
		return append(reasons, fault.Reason{Code: fault.BadValue,
			Message: "fits none, or more than one, of its alternatives", Path: path})
	case *kind.Required:
		return each(reasons, k.Missing, path, fault.Required, "must be given")
	case *kind.AdditionalProperties:
		return each(reasons, k.Properties, path, fault.UnknownField, "is not a known field")
	}
	if len(invalid.Causes) == 0 {
		return append(reasons, fault.Reason{Code: codeOf(invalid.ErrorKind), Message: describe(invalid.ErrorKind),
			Path: path})
	}
	for _, cause := range invalid.Causes {
		reasons = leaves(reasons, cause, root)
	}
	return reasons
}

// each appends one finding for every member named.
func each(reasons []fault.Reason, members []string, path string, code fault.Code, text string) []fault.Reason {
	for _, member := range members {
		reasons = append(reasons, fault.Reason{Code: code, Message: text, Path: join(path, member)})
	}
	return reasons
}

// codeOf is the catalogue's code for a kind of finding.
func codeOf(found jsonschema.ErrorKind) fault.Code {
	switch found.(type) {
	case *kind.Enum, *kind.Const:
		return fault.UnknownValue
	case *kind.MaxLength, *kind.MaxItems, *kind.MaxProperties:
		return fault.TooLong
	case *kind.UniqueItems:
		return fault.Duplicate
	case *kind.FalseSchema:
		return fault.UnknownField
	}
	return fault.BadValue
}

// describe is the text of a finding. It never repeats the value where that may be long or secret.
func describe(found jsonschema.ErrorKind) string {
	var text string
	switch k := found.(type) {
	case *kind.Pattern:
		text = "must match the pattern " + k.Want
	case *kind.Format:
		text = "must be a valid " + k.Want
	case *kind.FalseSchema:
		text = "is not allowed here"
	default:
		text = found.LocalizedString(message.NewPrinter(language.English))
	}
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage], "") + "…"
	}
	return text
}

// compile checks and compiles a JSON Schema; path is its place in its own document.
func compile(schema json.RawMessage, path string) (*jsonschema.Schema, *fault.Reason) {
	value, reason := decode(schema, MaxDocument, path)
	if reason != nil {
		return nil, reason
	}
	return compileValue(value, path)
}

// compileValue checks and compiles a decoded JSON Schema.
func compileValue(value any, path string) (*jsonschema.Schema, *fault.Reason) {
	if err := checkSchema(value); err != nil {
		return nil, &fault.Reason{Code: fault.SchemaInvalid, Message: err.Error(), Path: path}
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	compiler.UseLoader(nothingRemote{})
	err := compiler.AddResource(schemaURL, value)
	if err == nil {
		var compiled *jsonschema.Schema
		if compiled, err = compiler.Compile(schemaURL); err == nil {
			return compiled, nil
		}
	}
	return nil, &fault.Reason{Code: fault.SchemaInvalid, Message: schemaError(err), Path: path}
}

// schemaURL is the name of the schema being compiled; nothing is ever fetched from it.
const schemaURL = "urn:schema"

// schemaError is the compiler's complaint in one bounded line, with the place in the schema where it has one.
func schemaError(err error) string {
	text := "does not compile as a JSON Schema"
	var invalid *jsonschema.SchemaValidationError
	var nested *jsonschema.ValidationError
	if errors.As(err, &invalid) && errors.As(invalid.Err, &nested) {
		if found := leaves(nil, nested, "schema"); len(found) > 0 {
			text += ": " + found[0].Path + " " + found[0].Message
		}
	}
	var pattern *jsonschema.InvalidRegexError
	if errors.As(err, &pattern) {
		text += ": a pattern is not a valid regular expression"
	}
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage], "") + "…"
	}
	return text
}

// nothingRemote refuses to load anything: a schema is whole by itself.
type nothingRemote struct{}

// Load refuses.
func (nothingRemote) Load(url string) (any, error) {
	return nil, fmt.Errorf("a schema may not load %.80q", url)
}
