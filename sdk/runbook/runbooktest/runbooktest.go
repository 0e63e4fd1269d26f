// Package runbooktest checks an adapter's runbook against its page and its codes.
package runbooktest

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/runbook"
)

// update rewrites the page: go test ./cmd/NAME/support -update.
var update = flag.Bool("update", false, "write the runbook's page")

// Check requires that the page is printed from the runbook, that each edge can be taken by facts that are known or says
// why only a person sees it, that it has an action, and that a walk takes it: each of its codes, alone, leads to it.
func Check(t testing.TB, book runbook.Runbook, page string) {
	t.Helper()
	text := strings.ReplaceAll(book.Page(), "(README.md#facts)", "(../../docs/runbooks/README.md#facts)")
	if *update {
		require.NoError(t, os.WriteFile(filepath.Clean(page), []byte(text), 0o600))
	}
	written, err := os.ReadFile(filepath.Clean(page))
	require.NoError(t, err)
	require.Equal(t, text, string(written), "the page differs from its runbook: run the test with -update")
	for _, check := range book.Checks {
		for _, edge := range check.Edges {
			place := check.Key + "/" + edge.Key
			require.NotEmpty(t, edge.Act.String(), "%s has no action", place)
			require.True(t, edge.Person != "" || len(edge.Conditions()) > 0, "%s: no condition takes it", place)
			for _, condition := range edge.Conditions() {
				require.True(t, runbook.IsKnown(condition.Fact), "%s: fact %s does not exist", place, condition.Fact)
				for _, value := range condition.Values {
					if condition.Fact == runbook.FactCode {
						found, _, _ := book.Walk(runbook.Facts{condition.Fact: {value}})
						require.Equal(t, place, found, "the code %s leads elsewhere", value)
					}
				}
			}
		}
	}
}
