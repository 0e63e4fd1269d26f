package task_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/nodetask"
)

// TestDocumentNamesEveryKindAndCode reads the codes from their source, so that a new one cannot be left out.
func TestDocumentNamesEveryKindAndCode(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../../../docs/node-tasks.md")
	require.NoError(t, err)
	codes := constants(t, "../wire/errors.go", "Code")
	require.Len(t, nodetask.Kinds(), 10)
	for _, kind := range nodetask.Kinds() {
		require.Contains(t, string(raw), "**"+string(kind)+"**")
	}
	for _, code := range codes {
		if code != "UNKNOWN_RUN" { // between agent and init only
			require.Contains(t, string(raw), "| `"+code+"` |")
		}
	}
}

func constants(t *testing.T, file, prefix string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	require.NoError(t, err)
	var found []string
	ast.Inspect(parsed, func(node ast.Node) bool {
		value, ok := node.(*ast.ValueSpec)
		if !ok || len(value.Values) != 1 || !strings.HasPrefix(value.Names[0].Name, prefix) {
			return true
		}
		if literal, ok := value.Values[0].(*ast.BasicLit); ok {
			found = append(found, strings.Trim(literal.Value, `"`))
		}
		return true
	})
	require.NotEmpty(t, found)
	return found
}
