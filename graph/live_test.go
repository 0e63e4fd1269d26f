package graph_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gpuaas/app-platform/graph/feed"
	"github.com/gpuaas/app-platform/graph/generated/exec"
)

// TestWhatAGroupExecutesAsksForNothing checks the contract that live groups rest on: all that a live event shows is in
// the event, so that one execution, without any caller's rights, serves all subscribers.
func TestWhatAGroupExecutesAsksForNothing(t *testing.T) {
	t.Parallel()
	resolvers := reflect.TypeFor[exec.ResolverRoot]()
	schema := exec.NewExecutableSchema(exec.Config{}).Schema()
	sources := feed.Sources(nil, nil, nil)
	require.NotEmpty(t, sources)
	for name := range sources {
		event := schema.Types[schema.Subscription.Fields.ForName(name).Type.Name()]
		require.NotNil(t, event, name)
		_, has := resolvers.MethodByName(event.Name)
		require.False(t, has, "a field of %s has a resolver, which would ask with nobody's rights", event.Name)
		for _, field := range event.Fields {
			kind := schema.Types[field.Type.Name()].Kind
			require.True(t, kind == ast.Scalar || kind == ast.Enum, "%s.%s may ask for something", event.Name,
				field.Name)
		}
	}
}
