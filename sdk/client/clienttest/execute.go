package clienttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator"
)

// ordered is an object whose fields keep the order of the selection, as the specification requires.
type ordered struct {
	names  []string
	values []any
}

func (o *ordered) add(name string, value any) {
	if !slices.Contains(o.names, name) {
		o.names, o.values = append(o.names, name), append(o.values, value)
	}
}

// MarshalJSON writes the fields in their order.
func (o *ordered) MarshalJSON() ([]byte, error) {
	var text bytes.Buffer
	for i, name := range o.names {
		value, err := json.Marshal(o.values[i])
		if err != nil {
			return nil, err
		}
		separator := ","
		if i == 0 {
			separator = ""
		}
		fmt.Fprintf(&text, "%s%q:%s", separator, name, value)
	}
	return fmt.Appendf(nil, "{%s}", text.Bytes()), nil
}

// request is a GraphQL request over HTTP or in a subscribe message.
type request struct {
	Query         string         `json:"query"`
	OperationName string         `json:"operationName"`
	Variables     map[string]any `json:"variables"`
}

// prepared is a request that is valid against the SDL.
type prepared struct {
	operation *ast.OperationDefinition
	variables map[string]any
}

// serveHTTP answers a query or a mutation.
func (s *Server) serveHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.authenticated(r.Header.Get("Authorization")) {
		s.refuse(w, r, http.StatusUnauthorized, &Fault{Code: "UNAUTHENTICATED", Message: "the credential is unknown"})
		return
	}
	var req request
	if err := decode(r.Body, &req); err != nil {
		s.refuse(w, r, http.StatusBadRequest, &Fault{Code: "REQUEST_INVALID", Message: "not a GraphQL request"})
		return
	}
	ready, err := s.prepare(req)
	if err != nil {
		s.refuse(w, r, http.StatusBadRequest, err)
		return
	}
	data, path, err := s.execute(r, ready)
	if err != nil {
		s.answer(
			w, http.StatusOK, Object{"data": nil, "errors": []Object{envelope(err, path,
				r.Header.Get("X-Correlation-Id"))}},
		)
		return
	}
	s.answer(w, http.StatusOK, Object{"data": data})
}

// decode keeps numbers as they were written: the coercion of variables distinguishes integers.
func decode(from io.Reader, into *request) error {
	decoder := json.NewDecoder(from)
	decoder.UseNumber()
	return decoder.Decode(into)
}

// prepare parses and validates the document and coerces its variables.
func (s *Server) prepare(req request) (*prepared, error) {
	document, problems := gqlparser.LoadQueryWithRules(s.schema, req.Query, nil)
	if len(problems) > 0 {
		return nil, &Fault{Code: "DOCUMENT_INVALID", Message: problems.Error()}
	}
	operation := document.Operations.ForName(req.OperationName)
	if operation == nil {
		return nil, &Fault{Code: "DOCUMENT_INVALID", Message: "no operation of that name"}
	}
	variables, err := validator.VariableValues(s.schema, operation, req.Variables)
	if err != nil {
		return nil, &Fault{Code: "INVALID_ARGUMENT", Message: err.Error()}
	}
	return &prepared{operation: operation, variables: variables}, nil
}

// execute answers the root fields one after the other; the first error ends it, with the field's path.
func (s *Server) execute(r *http.Request, ready *prepared) (*ordered, []any, error) {
	root := s.schema.Query
	if ready.operation.Operation == ast.Mutation {
		root = s.schema.Mutation
	}
	data := &ordered{}
	for _, field := range s.collect(ready.operation.SelectionSet, root) {
		call := Call{Context: r.Context(), Field: field.Name, Args: field.ArgumentMap(ready.variables),
			Header: r.Header}
		value, err := s.resolve(call)
		if err == nil {
			value, err = s.shape(field, value)
		}
		if err != nil {
			return nil, []any{field.Alias}, err
		}
		data.add(field.Alias, value)
	}
	return data, nil, nil
}

func (s *Server) resolve(call Call) (any, error) {
	s.record(call)
	s.mu.Lock()
	resolver := s.resolvers[call.Field]
	s.mu.Unlock()
	if resolver == nil {
		return nil, &Fault{Code: "INTERNAL", Message: "the test gave no answer for " + call.Field}
	}
	return resolver(call)
}

// collect returns the fields of a selection that apply to an object type, with fragments opened.
func (s *Server) collect(selections ast.SelectionSet, object *ast.Definition) []*ast.Field {
	var fields []*ast.Field
	for _, selection := range selections {
		switch selection := selection.(type) {
		case *ast.Field:
			fields = append(fields, selection)
		case *ast.InlineFragment:
			if s.applies(selection.TypeCondition, object) {
				fields = append(fields, s.collect(selection.SelectionSet, object)...)
			}
		case *ast.FragmentSpread:
			if s.applies(selection.Definition.TypeCondition, object) {
				fields = append(fields, s.collect(selection.Definition.SelectionSet, object)...)
			}
		}
	}
	return fields
}

func (s *Server) applies(condition string, object *ast.Definition) bool {
	if condition == "" || condition == object.Name {
		return true
	}
	for _, possible := range s.schema.PossibleTypes[condition] {
		if possible.Name == object.Name {
			return true
		}
	}
	return false
}

// shape returns a root field's value in the form of its selection.
func (s *Server) shape(field *ast.Field, value any) (any, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", field.Name, err)
	}
	var plain any
	if err := json.Unmarshal(text, &plain); err != nil {
		return nil, fmt.Errorf("%s: %w", field.Name, err)
	}
	return s.complete(field.Definition.Type, field.SelectionSet, plain, field.Name)
}

// complete shapes a plain JSON value by its type; an absent value of a non-null type becomes the type's empty value.
func (s *Server) complete(typ *ast.Type, selections ast.SelectionSet, value any, path string) (any, error) {
	if value == nil && !typ.NonNull {
		return nil, nil
	}
	if typ.Elem != nil {
		return s.completeList(typ, selections, value, path)
	}
	definition := s.schema.Types[typ.NamedType]
	switch definition.Kind {
	case ast.Object, ast.Interface, ast.Union:
		return s.completeObject(definition, selections, value, path)
	default:
		if value == nil {
			return emptyValue(definition), nil
		}
		return value, nil
	}
}

// completeList shapes a list item by item.
func (s *Server) completeList(typ *ast.Type, selections ast.SelectionSet, value any, path string) (any, error) {
	list, ok := value.([]any)
	if value != nil && !ok {
		return nil, fmt.Errorf("%s: the SDL wants a list", path)
	}
	shaped := make([]any, 0, len(list))
	for i, item := range list {
		one, err := s.complete(typ.Elem, selections, item, fmt.Sprintf("%s[%d]", path, i))
		if err != nil {
			return nil, err
		}
		shaped = append(shaped, one)
	}
	return shaped, nil
}

// completeObject shapes an object by its selection. A field that the type does not have is an
// error.
func (s *Server) completeObject(
	definition *ast.Definition, selections ast.SelectionSet, value any, path string,
) (any, error) {
	object, ok := value.(map[string]any)
	if value != nil && !ok {
		return nil, fmt.Errorf("%s: the SDL wants an object", path)
	}
	if name, ok := object["__typename"].(string); ok && definition.Kind != ast.Object {
		definition = s.schema.Types[name]
	}
	for key := range object {
		if key != "__typename" && definition.Fields.ForName(key) == nil {
			return nil, fmt.Errorf("%s: %s has no field %s", path, definition.Name, key)
		}
	}
	shaped := &ordered{}
	for _, field := range s.collect(selections, definition) {
		if field.Name == "__typename" {
			shaped.add(field.Alias, definition.Name)
			continue
		}
		one, err := s.complete(field.Definition.Type, field.SelectionSet, object[field.Name], path+"."+field.Name)
		if err != nil {
			return nil, err
		}
		shaped.add(field.Alias, one)
	}
	return shaped, nil
}

// emptyValue returns the value of a required scalar or enum that the test left out.
func emptyValue(definition *ast.Definition) any {
	if definition.Kind == ast.Enum {
		return definition.EnumValues[0].Name
	}
	switch definition.Name {
	case "Int", "Float":
		return 0
	case "Boolean":
		return false
	case "DateTime":
		return "2026-01-02T03:04:05.000006Z"
	case "JSON":
		return Object{}
	default:
		return ""
	}
}
