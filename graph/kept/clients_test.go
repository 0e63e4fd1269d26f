package kept_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// console returns a document of the console with the fragments that it names.
func console(t *testing.T, path string, fragments ...string) string {
	t.Helper()
	read := func(path string) string {
		text, err := os.ReadFile("../../web/src/" + path)
		require.NoError(t, err)
		return string(text)
	}
	document, shared := read(path), read("api/fragments.graphql")
	for _, name := range fragments {
		_, after, found := strings.Cut(shared, "fragment "+name+" on ")
		require.True(t, found, name)
		body, _, found := strings.Cut(after, "\n}\n")
		require.True(t, found, name)
		document += "\nfragment " + name + " on " + body + "\n}\n"
	}
	return document
}

// The lists that console and command line read again and again come from what is kept, until they have changed.
func TestTheListsOfTheClientsAreKept(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 1<<20)
	caller, of := h.callers[0], h.instances[1]
	list := console(t, "workloads/list.graphql", "PageBits")
	live := []any{"CREATED", "STARTING", "RUNNING", "STOPPING", "FAILED"}
	for _, one := range []struct {
		text   string
		filter any
	}{
		{list, map[string]any{"statuses": live, "search": nil}}, {list, map[string]any{"statuses": nil, "search": "i"}},
		{gql.ListInstances_Operation, map[string]any{}}, {gql.ListInstances_Operation,
			map[string]any{"statuses": live, "system": false}},
		{gql.ListInstances_Operation, map[string]any{"appSlug": of.AppSlug}}, {gql.ListInstances_Operation, nil},
	} {
		variables := map[string]any{"projectId": string(of.ProjectID)}
		if one.filter != nil {
			variables["filter"] = one.filter
		}
		before := h.resolver.Answers().Shown()
		for range 3 { // the caller's scope is written, an answer is kept, and shown
			require.Contains(t, h.run(t, h.kept, caller, one.text, variables), of.ID, "%v", one.filter)
		}
		require.Greater(t, h.resolver.Answers().Shown(), before, "%v", one.filter)
		h.SQL(`UPDATE instance SET health_message = health_message || 'so' WHERE id = $1`, of.ID)
		require.Equal(t, h.run(t, h.executor, caller, one.text, variables),
			h.run(t, h.kept, caller, one.text, variables))
	}
}
