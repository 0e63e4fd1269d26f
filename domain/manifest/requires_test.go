package manifest_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/manifest"
)

func TestAnAppDeclaresThatItActsAsPeople(t *testing.T) {
	t.Parallel()
	full, err := os.ReadFile("testdata/full.json")
	require.NoError(t, err)
	parse := func(requires string, actions bool) (*manifest.Manifest, error) {
		var document map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(full, &document))
		if requires != "" {
			document["requires"] = json.RawMessage(requires)
		}
		if !actions {
			delete(document, "actions")
			delete(document, "work")
		}
		data, err := json.Marshal(document)
		require.NoError(t, err)
		return manifest.Parse(data)
	}
	for requires, acts := range map[string]bool{"": false, `{}`: false, `{"identities": "posix"}`: true} {
		m, err := parse(requires, true)
		require.NoError(t, err, requires)
		require.Equal(t, acts, m.ActsAsPeople(), requires)
	}
	for requires, path := range map[string]string{`{"identities": "ldap"}`: "requires.identities",
		`{"uid": 0}`: "requires.uid"} {
		_, err := parse(requires, true)
		require.Equal(t, path, fault.From(err).Reasons[0].Path, requires)
	}
	_, err = parse(`{"identities": "posix"}`, false)
	require.Equal(t, []fault.Reason{{Code: fault.BadValue, Path: "requires.identities",
		Message: "needs an action: an identity is that of an action's requester"}}, fault.From(err).Reasons)
}
