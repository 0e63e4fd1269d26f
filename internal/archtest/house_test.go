package archtest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/internal/archtest"
)

// house is the module as it lies on disk.
func house(t *testing.T) *archtest.Tree {
	t.Helper()
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	_, err = os.Stat(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	tree, err := archtest.Load(root)
	require.NoError(t, err)
	require.NotEmpty(t, tree.Written())
	return tree
}

func TestTheHouseKeepsItsRules(t *testing.T) {
	t.Parallel()
	tree := house(t)
	for _, rule := range archtest.Rules() {
		t.Run(rule.Name, func(t *testing.T) {
			t.Parallel()
			var lines []string
			for _, finding := range rule.Check(tree) {
				lines = append(lines, finding.String())
			}
			require.Empty(t, lines, "%s\n%s", rule.Name, strings.Join(lines, "\n"))
		})
	}
}
