package graph_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gpuaas/app-platform/graph"
	"github.com/gpuaas/app-platform/graph/generated/exec"
)

// reached are the types that answers to a root type may hold.
func reached(schema *ast.Schema, from *ast.Definition, found map[string]*ast.Definition) map[string]*ast.Definition {
	if found[from.Name] != nil {
		return found
	}
	found[from.Name] = from
	for _, field := range from.Fields {
		found = reached(schema, schema.Types[field.Type.Name()], found)
	}
	for _, kind := range schema.GetPossibleTypes(from) {
		found = reached(schema, kind, found)
	}
	return found
}

// Answers of queries are compressed, so none may hold a credential: its length would reveal something about it.
func TestCredentialsAreAnswersOfMutationsAlone(t *testing.T) {
	t.Parallel()
	schema := exec.NewExecutableSchema(exec.Config{Resolvers: &graph.Resolver{}}).Schema()
	named := regexp.MustCompile(`(?i)^(secret|token|credential|password|privatekey)$`)
	told := regexp.MustCompile(`cannot be shown again|for the only time|Bearer`)
	credentials := func(root *ast.Definition) (found []string) {
		for _, kind := range reached(schema, root, map[string]*ast.Definition{}) {
			for _, field := range kind.Fields {
				text := schema.Types[field.Type.Name()].Kind == ast.Scalar
				if text && (named.MatchString(field.Name) || told.MatchString(field.Description)) {
					found = append(found, kind.Name+"."+field.Name)
				}
			}
		}
		return found
	}
	require.Empty(t, credentials(schema.Query))
	require.Empty(t, credentials(schema.Subscription))
	require.Greater(t, len(credentials(schema.Mutation)), 5,
		"the words by which they are known are still those of the schema")
}

func TestTheUncompressedFieldsAreTheSchemas(t *testing.T) {
	t.Parallel()
	schema := exec.NewExecutableSchema(exec.Config{Resolvers: &graph.Resolver{}}).Schema()
	require.NotEmpty(t, graph.Uncompressed)
	for _, each := range graph.Uncompressed {
		kind, field, _ := strings.Cut(each, ".")
		require.NotNil(t, schema.Types[kind], each)
		require.NotNil(t, schema.Types[kind].Fields.ForName(field), each)
	}
}
