package graph_test

import (
	"fmt"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gpuaas/app-platform/graph"
	"github.com/gpuaas/app-platform/graph/denial"
	"github.com/gpuaas/app-platform/graph/generated/exec"
	"github.com/gpuaas/app-platform/transport"
)

// Enums are plain strings in Go, and nothing behind the transport checks their values again.
func TestAValueThatAnEnumDoesNotHaveReachesNoResolver(t *testing.T) {
	t.Parallel()
	schema := exec.NewExecutableSchema(exec.Config{Resolvers: &graph.Resolver{}})
	engine, err := transport.NewEngine(transport.Config{Schema: schema, Present: denial.Present})
	require.NoError(t, err)
	var enums int
	for name, definition := range schema.Schema().Types {
		if definition.Kind != ast.Enum || definition.BuiltIn {
			continue
		}
		enums++
		// Any selected field does: only the operation's variables are checked here.
		for _, declared := range []string{name, name + "!", "[" + name + "!]"} {
			document := fmt.Sprintf(`query($v: %s) { viewer { user { id } } }`, declared)
			for _, bad := range []any{"", "nonsense", "nonsense ", 3, true, map[string]any{}} {
				_, refused := engine.Prepare(t.Context(), &graphql.RawParams{Query: document,
					Variables: map[string]any{"v": bad}})
				require.NotEmpty(t, refused, "%s: %v", declared, bad)
			}
		}
	}
	require.Greater(t, enums, 30)
	for _, document := range []string{
		`{ allocations(projectId: "p", statuses: [NONSENSE]) { edges { cursor } } }`,
		`{ allocations(projectId: "p", statuses: ["READY"]) { edges { cursor } } }`,
		`{ allocations(projectId: "p", statuses: [ready]) { edges { cursor } } }`,
	} {
		_, refused := engine.Prepare(t.Context(), &graphql.RawParams{Query: document})
		require.NotEmpty(t, refused, document)
	}
	document := `query($v: [AllocationStatus!]) { allocations(projectId: "p", statuses: $v) { edges { cursor } } }`
	for value, right := range map[string]bool{"READY": true, "ready": false, "READY ": false, "NONSENSE": false} {
		_, refused := engine.Prepare(t.Context(), &graphql.RawParams{Query: document,
			Variables: map[string]any{"v": []any{value}}})
		require.Equal(t, right, len(refused) == 0, "%s: %v", value, refused)
	}
}
