package contracttest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Pages that say of themselves that a test keeps their links alive.
var alive = []string{"docs/gap-table.md", "docs/guides/releasing-an-app.md"}

var (
	linkPattern = regexp.MustCompile(`\[([^\]]*)\]\(([^)]+)\)`)
	testPattern = regexp.MustCompile("`(Test[A-Za-z0-9]+)`")
	// classPattern is a row of the gap table: its area, its class and what was decided.
	classPattern = regexp.MustCompile(
		`(?m)^\| ([^|]+) \| (core primitive needed|adapter-owned concern|prove with first example app|deferred until proven) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$`)
)

// Each link leads to a file that exists, and each test that is named is a function of the file that its link leads to.
func TestTheGapTableIsAlive(t *testing.T) {
	t.Parallel()
	for _, page := range alive {
		raw, err := os.ReadFile(filepath.Join("../..", page))
		require.NoError(t, err)
		text := string(raw)
		linked := map[string]bool{}
		for _, link := range linkPattern.FindAllStringSubmatch(text, -1) {
			target, heading, _ := strings.Cut(link[2], "#")
			if strings.Contains(target, "://") {
				continue
			}
			if target == "" {
				target = filepath.Base(page)
			}
			file := filepath.Join("../..", filepath.Dir(page), target)
			content, err := os.ReadFile(file)
			require.NoError(t, err, "%s links %s", page, link[2])
			if heading != "" {
				require.Contains(t, headings(string(content)), heading, "%s links %s", page, link[2])
			}
			if test := testPattern.FindStringSubmatch(link[1]); test != nil {
				require.Contains(t, string(content), "func "+test[1]+"(", "%s names a test of %s", page, target)
				linked[test[1]] = true
			}
		}
		for _, test := range testPattern.FindAllStringSubmatch(text, -1) {
			require.True(t, linked[test[1]], "%s names %s without a link to it", page, test[1])
		}
	}
}

// headings are the anchors of a page.
func headings(text string) (anchors []string) {
	for line := range strings.Lines(text) {
		if title, ok := strings.CutPrefix(strings.TrimSpace(line), "#"); ok {
			title = strings.ToLower(strings.TrimSpace(strings.TrimLeft(title, "#")))
			title = regexp.MustCompile(`[^a-z0-9 -]`).ReplaceAllString(title, "")
			anchors = append(anchors, strings.ReplaceAll(title, " ", "-"))
		}
	}
	return anchors
}

func TestTheGapTableHasAnAnswerToEachOfItsRows(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../docs/gap-table.md")
	require.NoError(t, err)
	areas := map[string]bool{}
	for _, row := range classPattern.FindAllStringSubmatch(string(raw), -1) {
		areas[row[1]] = true
		require.Contains(t, row[4], "](", "the row of %s names its code", row[1])
		require.Regexp(t, testPattern, row[5], "the row of %s names its evidence", row[1])
	}
	require.Len(t, areas, 22)
}
