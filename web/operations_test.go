package web_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"

	"github.com/gpuaas/app-platform/transport/guard"
)

// read joins the files of the patterns.
func read(t *testing.T, patterns ...string) string {
	t.Helper()
	var all strings.Builder
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			all.Write(text)
		}
	}
	return all.String()
}

func TestEveryOperationOfTheConsoleFitsTheSchemaAndTheGuard(t *testing.T) {
	t.Parallel()
	schema := gqlparser.MustLoadSchema(&ast.Source{Name: "schema", Input: read(t, "../graph/schema/*.graphql")})
	document, err := parser.ParseQuery(&ast.Source{Input: read(t, "src/*/*.graphql")})
	require.NoError(t, err)
	plan, refusal := guard.New(schema, guard.DefaultLimits()).Analyze(document)
	require.Nil(t, refusal)
	require.NotEmpty(t, document.Operations)
	for _, operation := range document.Operations {
		require.Nil(t, plan.Check(operation, nil), "%s costs %d", operation.Name, plan.Cost(operation, nil))
		t.Logf("%s costs %d", operation.Name, plan.Cost(operation, nil))
	}
	_, problems := gqlparser.LoadQueryWithRules(schema, read(t, "src/*/*.graphql"), nil)
	require.Empty(t, problems)
}
