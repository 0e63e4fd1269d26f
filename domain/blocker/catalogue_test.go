package blocker

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestTheDocumentOfBlockersIsTheTable(t *testing.T) {
	t.Parallel()
	const path = "../../docs/blockers.md"
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(Catalogue()), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), Catalogue(), "run go test ./domain/blocker -update and read the difference")
}

func TestEveryRuleIsWhole(t *testing.T) {
	t.Parallel()
	code, sentence := regexp.MustCompile(`^[A-Z]+(_[A-Z]+)*$`), regexp.MustCompile(`^\{?[a-z0-9]`)
	known := make(map[string]bool)
	for _, rule := range Rules() {
		require.Regexp(t, code, rule.Code)
		require.False(t, known[rule.Code], "%s stands twice", rule.Code)
		known[rule.Code] = true
		require.Contains(t, []Scope{OfOperations, OfInstances, OfBoth}, rule.Scope, rule.Code)
		require.Contains(t, []string{"", OwnerAdapter, OwnerPlatform, OwnerUser, OwnerNode}, rule.Owner, rule.Code)
		for _, text := range []string{rule.When, rule.Clears, rule.Since, rule.Message} {
			require.Regexp(t, sentence, text, rule.Code)
			require.False(t, strings.HasSuffix(text, "."), rule.Code)
		}
		require.NotNil(t, rule.find, rule.Code)
	}
}
