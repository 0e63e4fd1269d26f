package graph_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Stubs that gqlgen wrote before panic; a resolver that is missing now does not compile.
func TestNoResolverIsAStub(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.resolvers.go")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NotContains(t, string(text), "not implemented:", "%s: write it, or bind the field in gqlgen.yml", file)
		require.NotContains(t, string(text), "!!! WARNING !!!", "%s: delete what gqlgen left", file)
	}
}
