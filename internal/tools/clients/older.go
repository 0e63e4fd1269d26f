package main

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// reduction is what a platform of an older SDL serves of the operations: each without the result's fields that it
// does not have. An operation that needs more of a newer platform than fields of its result is in none of the two.
type reduction struct {
	schema    *ast.Schema
	doc       *ast.QueryDocument
	fragments map[string]*ast.FragmentDefinition // nil where nothing is left
	// same are the operations that the older platform serves as they are.
	same map[string]bool
	// less are the operations that it serves with fields left out.
	less map[string]*ast.OperationDefinition
}

func reduce(schema *ast.Schema, doc *ast.QueryDocument) *reduction {
	r := &reduction{schema: schema, doc: doc, fragments: map[string]*ast.FragmentDefinition{},
		same: map[string]bool{}, less: map[string]*ast.OperationDefinition{}}
	for _, op := range doc.Operations {
		less, served := r.operation(op)
		switch {
		case !served:
		case r.full(op, less):
			r.same[op.Name] = true
		default:
			r.less[op.Name] = less
		}
	}
	return r
}

// full reports whether nothing was left out, in the operation or in a fragment of it.
func (r *reduction) full(op, less *ast.OperationDefinition) bool {
	if operationText(op) != operationText(less) {
		return false
	}
	for _, name := range spreads(op.SelectionSet, r.doc.Fragments) {
		if fragmentText(r.doc.Fragments.ForName(name)) != fragmentText(r.fragments[name]) {
			return false
		}
	}
	return true
}

func (r *reduction) operation(op *ast.OperationDefinition) (*ast.OperationDefinition, bool) {
	roots := map[ast.Operation]*ast.Definition{ast.Query: r.schema.Query, ast.Mutation: r.schema.Mutation,
		ast.Subscription: r.schema.Subscription}
	root := roots[op.Operation]
	for _, selection := range op.SelectionSet {
		field, plain := selection.(*ast.Field)
		if !plain || root.Fields.ForName(field.Name) == nil {
			return nil, false
		}
	}
	for _, variable := range op.VariableDefinitions {
		if r.schema.Types[variable.Type.Name()] == nil {
			return nil, false
		}
	}
	set, served := r.set(op.SelectionSet, root)
	if !served || len(set) != len(op.SelectionSet) {
		return nil, false
	}
	less := *op
	less.SelectionSet, less.VariableDefinitions = set, nil
	for _, variable := range op.VariableDefinitions {
		if regexp.MustCompile(`\$` + variable.Variable + `\b`).MatchString(r.document(&less)) {
			less.VariableDefinitions = append(less.VariableDefinitions, variable)
		}
	}
	return &less, true
}

// set is a selection without what the older type has not. served is false where an argument is not known: without it
// the answer would be another.
func (r *reduction) set(set ast.SelectionSet, on *ast.Definition) (ast.SelectionSet, bool) {
	var left ast.SelectionSet
	for _, selection := range set {
		switch one := selection.(type) {
		case *ast.Field:
			field, served := r.field(one, on)
			if !served {
				return nil, false
			}
			if field != nil {
				left = append(left, field)
			}
		case *ast.FragmentSpread:
			fragment, served := r.fragment(one.Name)
			if !served {
				return nil, false
			}
			if fragment != nil {
				left = append(left, one)
			}
		case *ast.InlineFragment:
			inner, served := r.on(one.SelectionSet, one.TypeCondition)
			if !served {
				return nil, false
			}
			if len(inner) > 0 {
				less := *one
				less.SelectionSet = inner
				left = append(left, &less)
			}
		}
	}
	return left, true
}

func (r *reduction) field(field *ast.Field, on *ast.Definition) (*ast.Field, bool) {
	if field.Name == "__typename" {
		return field, true
	}
	known := on.Fields.ForName(field.Name)
	if known == nil {
		return nil, true
	}
	for _, argument := range field.Arguments {
		if known.Arguments.ForName(argument.Name) == nil {
			return nil, false
		}
	}
	if len(field.SelectionSet) == 0 {
		return field, true
	}
	set, served := r.on(field.SelectionSet, known.Type.Name())
	if !served || len(set) == 0 {
		return nil, served
	}
	less := *field
	less.SelectionSet = set
	return &less, true
}

func (r *reduction) on(set ast.SelectionSet, name string) (ast.SelectionSet, bool) {
	on := r.schema.Types[name]
	if on == nil {
		return nil, true
	}
	return r.set(set, on)
}

func (r *reduction) fragment(name string) (*ast.FragmentDefinition, bool) {
	if made, known := r.fragments[name]; known {
		return made, true
	}
	whole := r.doc.Fragments.ForName(name)
	set, served := r.on(whole.SelectionSet, whole.TypeCondition)
	if !served {
		return nil, false
	}
	if len(set) == 0 {
		r.fragments[name] = nil
		return nil, true
	}
	less := *whole
	less.SelectionSet = set
	r.fragments[name] = &less
	return &less, true
}

// document is the text of an operation of less with the fragments that it needs.
func (r *reduction) document(op *ast.OperationDefinition) string {
	var left ast.FragmentDefinitionList
	for _, fragment := range r.fragments {
		if fragment != nil {
			left = append(left, fragment)
		}
	}
	parts := []string{operationText(op)}
	for _, name := range spreads(op.SelectionSet, left) {
		parts = append(parts, fragmentText(r.fragments[name]))
	}
	return strings.Join(parts, "\n")
}

// typescriptOlder is the module with the texts of less, by the names of the operations.
func (a *api) typescriptOlder() string {
	var text strings.Builder
	text.WriteString("// Code generated by internal/tools/clients; DO NOT EDIT.\n" +
		"// What a platform of version 1 of the API serves of the operations, by their names: without newer fields.\n" +
		"export const older: Readonly<Record<string, string>> = {\n")
	for _, op := range a.doc.Operations {
		if less := a.older.less[op.Name]; less != nil {
			fmt.Fprintf(&text, "  %s: `%s`,\n", op.Name, indentless(a.older.document(less)))
		}
	}
	text.WriteString("};\n")
	return text.String()
}

// newer is the list of the operations that the older platform does not serve at all.
func (a *api) newer() string {
	text := ""
	for _, op := range a.doc.Operations {
		if a.older.less[op.Name] == nil && !a.older.same[op.Name] {
			text += op.Name + "\n"
		}
	}
	return text
}

// indentless is a text of GraphQL in which white space is as short as can be.
func indentless(text string) string {
	return strings.Join(strings.Fields(text), " ")
}
