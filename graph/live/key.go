package live

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/formatter"
)

// groupKey returns a hash of all that decides a group's bytes: the document's meaning, its variables without the
// cursor, and the feed.
func groupKey(op *graphql.OperationContext, feed string) (string, error) {
	variables := maps.Clone(op.Variables)
	for _, name := range cursorVariables(op) {
		delete(variables, name)
	}
	encoded, err := json.Marshal(variables)
	if err != nil {
		return "", fmt.Errorf("encode variables: %w", err)
	}
	sum := sha256.New()
	for _, part := range []string{normal(op), string(encoded), feed} {
		fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
	return string(sum.Sum(nil)), nil
}

// normal returns the text of an operation with its fragments, the same for all documents that differ in white space,
// commas, comments, names, the order of fragments, other operations or the root field's arguments alone: those decide
// what is watched and from where, which the feed and the cursor say.
func normal(op *graphql.OperationContext) string {
	operation := *op.Operation
	operation.Name = ""
	operation.SelectionSet = slices.Clone(operation.SelectionSet)
	for i, selection := range operation.SelectionSet {
		if field, ok := selection.(*ast.Field); ok {
			watched := *field
			watched.Arguments = nil
			operation.SelectionSet[i] = &watched
		}
	}
	fragments := slices.SortedFunc(slices.Values(op.Doc.Fragments), func(a, b *ast.FragmentDefinition) int {
		return strings.Compare(a.Name, b.Name)
	})
	var text strings.Builder
	formatter.NewFormatter(&text, formatter.WithIndent("")).FormatQueryDocument(&ast.QueryDocument{
		Operations: ast.OperationList{&operation}, Fragments: fragments})
	return text.String()
}

// cursorVariables returns the names of the variables that the field's `after` is set from.
func cursorVariables(op *graphql.OperationContext) []string {
	var names []string
	for _, selection := range op.Operation.SelectionSet {
		field, ok := selection.(*ast.Field)
		if !ok {
			continue
		}
		if after := field.Arguments.ForName("after"); after != nil && after.Value.Kind == ast.Variable {
			names = append(names, after.Value.Raw)
		}
	}
	return names
}

// rootField returns the operation's one field, and nil for an operation of another form.
func rootField(op *graphql.OperationContext) *ast.Field {
	if op.Operation == nil || op.Operation.Operation != ast.Subscription || len(op.Operation.SelectionSet) != 1 {
		return nil
	}
	field, _ := op.Operation.SelectionSet[0].(*ast.Field)
	return field
}
