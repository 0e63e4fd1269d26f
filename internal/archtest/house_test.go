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

func TestTheReadmeShowsTheHouse(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(readme), "<!-- house -->\n```\n")
	require.True(t, found, "README.md has no block marked <!-- house -->")
	shown, _, _ := strings.Cut(rest, "```")
	require.Equal(t, archtest.Picture(), shown, "README.md shows another house than internal/archtest/floors.go")
	require.Equal(t, byte('9'), shown[0], "at most nine floors")
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
