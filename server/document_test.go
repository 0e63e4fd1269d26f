package server

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gpuaas/app-platform/internal/contracttest"
)

// sdl is the contract as it is written.
func sdl(t *testing.T) *ast.Schema {
	t.Helper()
	schema, err := contracttest.LoadSchema("../graph/schema/*.graphql")
	require.NoError(t, err)
	return schema
}

// root is a root field with the kind of operation that calls it.
type root struct {
	operation ast.Operation
	field     *ast.FieldDefinition
}

// String is the name that tables know the field by, such as "mutation launchInstance".
func (r root) String() string { return string(r.operation) + " " + r.field.Name }

// roots is every root field.
func roots(schema *ast.Schema) []root {
	var all []root
	for _, of := range []struct {
		operation ast.Operation
		from      *ast.Definition
	}{{ast.Query, schema.Query}, {ast.Mutation, schema.Mutation}, {ast.Subscription, schema.Subscription}} {
		for _, field := range of.from.Fields {
			if !strings.HasPrefix(field.Name, "__") {
				all = append(all, root{of.operation, field})
			}
		}
	}
	return all
}

// document calls a root field with the arguments named, each as a variable, and selects every field within reach that
// needs no argument.
func document(schema *ast.Schema, r root, arguments map[string]any) string {
	var declared, passed []string
	for _, argument := range r.field.Arguments {
		if _, ok := arguments[argument.Name]; !ok && argument.Name == "first" {
			passed = append(passed, "first: 2")
		} else if ok {
			declared = append(declared, fmt.Sprintf("$%s: %s", argument.Name, argument.Type))
			passed = append(passed, fmt.Sprintf("%s: $%[1]s", argument.Name))
		}
	}
	text := string(r.operation) + " Call"
	if len(declared) > 0 {
		text += "(" + strings.Join(declared, ", ") + ")"
	}
	text += " { " + r.field.Name
	if len(passed) > 0 {
		text += "(" + strings.Join(passed, ", ") + ")"
	}
	depth := 3
	if flat[r.field.Type.Name()] {
		depth = 2
	}
	return text + selection(schema, schema.Types[r.field.Type.Name()], depth) + " }"
}

// flat are types with lists in lists in lists: all of that at once is more than a document may select. What lies deeper
// is selected where their pages are.
var flat = map[string]bool{"Manifest": true, "Artifact": true}

// reaching are types that are read from a node, which these tests do not have; the audit has every reading of them.
// Strangers learn nothing of them: the subscription's recipe and TestWhoMayNotReadLearnsNothing check that.
var reaching = map[string]bool{"LogPage": true, "MemberMetrics": true}

// selection selects what a type has, down to a depth; a page and its edges do not count.
func selection(schema *ast.Schema, of *ast.Definition, depth int) string {
	if !of.IsCompositeType() {
		return ""
	}
	text := " { __typename"
	if of.Kind == ast.Interface {
		text += " id"
		for _, possible := range schema.GetPossibleTypes(of) {
			text += " ... on " + possible.Name + " {" + scalars(schema, possible) + " }"
		}
		return text + " }"
	}
	for _, field := range of.Fields {
		inner := schema.Types[field.Type.Name()]
		if strings.HasPrefix(field.Name, "__") || needsArgument(field) || reaching[inner.Name] ||
			(inner.IsCompositeType() && depth == 0) {
			continue
		}
		below := depth - 1
		if strings.HasSuffix(inner.Name, "Connection") || strings.HasSuffix(inner.Name, "Edge") {
			below = depth
		}
		text += " " + field.Name + sized(field) + selection(schema, inner, below)
	}
	return text + " }"
}

// scalars selects the plain fields of a type, except those that another type has with another type of value: one answer
// cannot hold both.
func scalars(schema *ast.Schema, of *ast.Definition) (text string) {
	for _, field := range of.Fields {
		if schema.Types[field.Type.Name()].IsLeafType() && !strings.HasPrefix(field.Name, "__") &&
			!needsArgument(field) &&
			!disputed(schema, field) {
			text += " " + field.Name
		}
	}
	return text
}

func disputed(schema *ast.Schema, field *ast.FieldDefinition) bool {
	for _, possible := range schema.GetPossibleTypes(schema.Types["Node"]) {
		if other := possible.Fields.ForName(field.Name); other != nil && other.Type.String() != field.Type.String() {
			return true
		}
	}
	return false
}

func needsArgument(field *ast.FieldDefinition) bool {
	for _, argument := range field.Arguments {
		if argument.Type.NonNull && argument.DefaultValue == nil {
			return true
		}
	}
	return false
}

// sized keeps pages small, so that the whole stays below the limit on cost.
func sized(field *ast.FieldDefinition) string {
	if field.Arguments.ForName("first") != nil {
		return "(first: 2)"
	}
	return ""
}
