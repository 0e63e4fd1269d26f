package client_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2"
	gqlast "github.com/vektah/gqlparser/v2/ast"
)

// notOffered are root fields that the client has no operation for, with the reason.
var notOffered = map[string]string{}

func TestEveryRootFieldHasAnOperation(t *testing.T) {
	t.Parallel()
	schema, err := gqlparser.LoadSchema(sources(t, schemaFiles)...)
	require.NoError(t, err)
	asked := map[string]bool{}
	var text strings.Builder
	for _, source := range sources(t, "operations/*.graphql") {
		text.WriteString(source.Input)
	}
	document, problems := gqlparser.LoadQueryWithRules(schema, text.String(), nil)
	require.Empty(t, problems)
	for _, operation := range document.Operations {
		for _, selection := range operation.SelectionSet {
			asked[selection.(*gqlast.Field).Name] = true
		}
	}
	for _, root := range []*gqlast.Definition{schema.Query, schema.Mutation, schema.Subscription} {
		for _, field := range root.Fields {
			if !strings.HasPrefix(field.Name, "__") && notOffered[field.Name] == "" {
				require.True(t, asked[field.Name], "no operation asks for %s.%s", root.Name, field.Name)
			}
		}
	}
}

// TestCodesAreThePlatformsCatalogue reads the catalogue's source, as the SDK imports nothing of the platform.
func TestCodesAreThePlatformsCatalogue(t *testing.T) {
	t.Parallel()
	ours, theirs := stringConstants(t, "codes.go"), stringConstants(t, "../../domain/fault/catalogue.go")
	require.NotEmpty(t, ours)
	offered := map[string]bool{}
	for name, code := range ours {
		offered[code] = true
		require.Equal(t, code, theirs[strings.TrimPrefix(name, "Code")], name)
	}
	entries := topLevelCodes(t, "../../domain/fault/catalogue.go")
	require.NotEmpty(t, entries)
	for _, name := range entries {
		require.True(t, offered[theirs[name]], "the SDK lacks %s", theirs[name])
	}
}

func sources(t *testing.T, pattern string) []*gqlast.Source {
	t.Helper()
	files, err := filepath.Glob(pattern)
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var found []*gqlast.Source
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		found = append(found, &gqlast.Source{Name: file, Input: string(text)})
	}
	return found
}

// stringConstants are the constants of a Go file with their string values.
func stringConstants(t *testing.T, file string) map[string]string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	found := map[string]string{}
	ast.Inspect(parsed, func(node ast.Node) bool {
		if spec, ok := node.(*ast.ValueSpec); ok && len(spec.Values) == 1 {
			if literal, ok := spec.Values[0].(*ast.BasicLit); ok && literal.Kind == token.STRING {
				found[spec.Names[0].Name] = strings.Trim(literal.Value, `"`)
			}
		}
		return true
	})
	return found
}

// topLevelCodes are the names of the catalogue's entries that have an HTTP status, so that they can be the code at the
// top of an error.
func topLevelCodes(t *testing.T, file string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	var found []string
	ast.Inspect(parsed, func(node ast.Node) bool {
		entry, ok := node.(*ast.CompositeLit)
		if !ok || entry.Type != nil || len(entry.Elts) < 2 {
			return true
		}
		name, isName := entry.Elts[0].(*ast.Ident)
		status, isStatus := entry.Elts[1].(*ast.BasicLit)
		if isName && isStatus && status.Value != "0" {
			found = append(found, name.Name)
		}
		return true
	})
	return found
}
