package nodetask_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2"
	graphql "github.com/vektah/gqlparser/v2/ast"

	"github.com/gpuaas/app-platform/sdk/nodetask"
)

var update = flag.Bool("update", false, "rewrite the tables in docs/node-tasks.md")

const (
	document = "../../docs/node-tasks.md"
	begin    = "<!-- fields: written from the comments in sdk/nodetask by go test ./sdk/nodetask -update -->\n"
	end      = "<!-- end of fields -->\n"
)

// The document's tables are written from the types and their comments, so that a field, its bound and its default are
// written once.
func TestDocumentHasTheFieldsOfEveryKind(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(document)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(raw), begin)
	require.True(t, found)
	tables, after, found := strings.Cut(rest, end)
	require.True(t, found)
	want := rows(t)
	if *update {
		require.NoError(t, os.WriteFile(document, []byte(before+begin+want+end+after), 0o644))
		return
	}
	require.Equal(t, want, tables, "write the tables again: go test ./sdk/nodetask -update")
}

// The calls that the document shows are calls of the public API.
func TestDocumentShowsCallsOfThePublicAPI(t *testing.T) {
	t.Parallel()
	schema, err := os.ReadFile("../../docs/api/schema.graphql")
	require.NoError(t, err)
	loaded, err := gqlparser.LoadSchema(&graphql.Source{Input: string(schema)})
	require.NoError(t, err)
	raw, err := os.ReadFile(document)
	require.NoError(t, err)
	calls := strings.Split(string(raw), "```graphql\n")[1:]
	require.Len(t, calls, 5)
	for _, call := range calls {
		query, _, closed := strings.Cut(call, "```")
		require.True(t, closed)
		_, list := gqlparser.LoadQueryWithRules(loaded, query, nil)
		require.Empty(t, list, query)
	}
}

// rows returns a table for each kind that has fields.
func rows(t *testing.T) string {
	t.Helper()
	comments := commentsOf(t)
	var out strings.Builder
	for _, kind := range nodetask.Kinds() {
		of := reflect.TypeOf(nodetask.New(kind)).Elem()
		if of.NumField() == 0 {
			continue
		}
		text := strings.TrimPrefix(comments[of.Name()], of.Name())
		fmt.Fprintf(&out, "\n**%s**%s\n\n| field | | |\n|---|---|---|\n", kind, text)
		table(t, &out, comments, of, "")
	}
	out.WriteString("\n")
	return out.String()
}

func table(t *testing.T, out *strings.Builder, comments map[string]string, of reflect.Type, at string) {
	t.Helper()
	for i := range of.NumField() {
		field := of.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		text := comments[of.Name()+"."+field.Name]
		require.NotEmpty(t, text, "%s.%s has no comment", of.Name(), field.Name)
		text = "`" + name + "`" + strings.TrimPrefix(text, field.Name)
		below, kind := typeName(field.Type)
		if options == "" {
			kind += ", required"
		}
		fmt.Fprintf(out, "| `%s` | %s | %s |\n", at+name, kind, strings.ReplaceAll(text, "|", `\|`))
		switch {
		case below != nil && field.Type.Kind() == reflect.Slice:
			table(t, out, comments, below, at+name+".0.")
		case below != nil:
			table(t, out, comments, below, at+name+".")
		}
	}
}

// typeName returns the JSON type of a field, and the struct that is below it.
func typeName(of reflect.Type) (below reflect.Type, name string) {
	switch of.Kind() {
	case reflect.Pointer:
		return typeName(of.Elem())
	case reflect.Slice:
		below, name = typeName(of.Elem())
		return below, "list of " + name
	case reflect.Struct:
		return of, "object"
	case reflect.Int:
		return nil, "whole number"
	case reflect.Float64:
		return nil, "number"
	case reflect.Bool:
		return nil, "true or false"
	default:
		return nil, "text"
	}
}

// commentsOf reads the comments of all types, by "Type", and of all their fields, by "Type.Field".
func commentsOf(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "spec.go", nil, parser.ParseComments)
	require.NoError(t, err)
	comments := map[string]string{}
	for _, declaration := range file.Decls {
		group, ok := declaration.(*ast.GenDecl)
		if !ok || group.Tok != token.TYPE {
			continue
		}
		name := group.Specs[0].(*ast.TypeSpec).Name.Name
		comments[name] = oneLine(group.Doc)
		for _, field := range group.Specs[0].(*ast.TypeSpec).Type.(*ast.StructType).Fields.List {
			comments[name+"."+field.Names[0].Name] = oneLine(field.Doc)
		}
	}
	return comments
}

func oneLine(comment *ast.CommentGroup) string {
	return strings.Join(strings.Fields(comment.Text()), " ")
}
