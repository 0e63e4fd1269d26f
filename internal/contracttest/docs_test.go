package contracttest_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// link is a Markdown link to a file of ours.
var link = regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)

// documents are all Markdown files that a reader is sent to.
func documents(t *testing.T) []string {
	t.Helper()
	found := []string{"../../README.md", "../../CHANGELOG.md"}
	require.NoError(t, filepath.WalkDir("../../docs", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && strings.HasSuffix(name, ".md") {
			found = append(found, name)
		}
		return err
	}))
	return found
}

func TestEveryLinkOfTheDocumentsLeadsSomewhere(t *testing.T) {
	t.Parallel()
	var links int
	for _, name := range documents(t) {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, match := range link.FindAllStringSubmatch(string(text), -1) {
			links++
			require.FileExists(t, existing(filepath.Join(filepath.Dir(name), match[1])), "%s links to %s",
				name, match[1])
		}
	}
	require.Greater(t, links, 30)
}

// existing returns the file to check for a target: itself, or for a folder the first file in it.
func existing(target string) string {
	entries, err := os.ReadDir(target)
	if err != nil || len(entries) == 0 {
		return target
	}
	return filepath.Join(target, entries[0].Name())
}

func TestEveryDecisionIsInItsTable(t *testing.T) {
	t.Parallel()
	table, err := os.ReadFile("../../docs/adr/README.md")
	require.NoError(t, err)
	names, err := filepath.Glob("../../docs/adr/0*.md")
	require.NoError(t, err)
	require.NotEmpty(t, names)
	for _, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Contains(t, string(table), "("+filepath.Base(name)+")")
		for _, part := range []string{"## Context", "## Choice", "## Cost"} {
			require.Contains(t, string(text), part, name)
		}
		require.Less(t, strings.Count(string(text), "\n"), 80, "%s: one page", name)
	}
}
