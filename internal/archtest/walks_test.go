package archtest_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/internal/archtest"
)

// clients holds the folders of programs that call the platform or carry its operations out. A new verb or kind needs no
// change there.
var clients = []string{"cmd/", "web/", "examples/", "sdk/client/", "sdk/adaptertest/", "rig/"}

// storageAndContract are the folders that could have to name a column before it is stored and published.
var storageAndContract = []string{"ent/", "migrations/", "graph/", "service/kit/", "domain/"}

// written returns the files by hand that match, tests apart.
func written(tree *archtest.Tree, named string, in func(path string) bool) (paths []string) {
	pattern := regexp.MustCompile(named)
	for _, file := range tree.Files {
		if !file.Test && !file.Generated && !file.Document() && in(file.Path) && pattern.Match(file.Source) {
			paths = append(paths, file.Path)
		}
	}
	return paths
}

func below(folders []string) func(string) bool {
	return func(path string) bool {
		return slices.ContainsFunc(folders, func(folder string) bool { return strings.HasPrefix(path, folder) })
	}
}

// TestTheThreeWalksAreShort counts the places that README's three walks name. The bounds are the promise: a change that
// makes a walk longer says the same thing in one more place.
func TestTheThreeWalksAreShort(t *testing.T) {
	t.Parallel()
	tree := house(t)
	everywhere := func(path string) bool {
		// stand-ins, rigs, rules, what is printed, and what advises or repairs by kinds that there are
		return !below([]string{"web/dev/", "rig/", "internal/", "docs/", "domain/blocker/", "domain/repair/",
			"domain/runbook/", "service/triage/"})(path)
	}
	for _, verb := range []string{"[rR]otateRuntimeSecret", "[dD]etachControlPlane", "[qQ]uarantineArtifact"} {
		places := written(tree, verb+`\b`, everywhere)
		require.GreaterOrEqual(t, len(places), 5, "%s: the test counts nothing", verb)
		require.LessOrEqual(t, len(places), 7, "%s is a verb in\n%s", verb, strings.Join(places, "\n"))
	}
	for _, column := range []string{`scheduler_type|schedulerType`, `agent_version|agentVersion`,
		`runtime_backend|runtimeBackend`} {
		places := written(tree, `\b(`+column+`)\b`, below(storageAndContract))
		require.NotEmpty(t, places, "%s: the test counts nothing", column)
		require.LessOrEqual(t, len(places), 3, "%s is a column in\n%s", column, strings.Join(places, "\n"))
	}
	platform := func(path string) bool { return everywhere(path) && !below(clients)(path) }
	for _, kind := range []string{
		`MEMBER_CORDON\b|MemberCordon\b|[cC]ordonMember\b`, `MEMBER_LABEL\b|MemberLabel\b|[lL]abelMember\b`,
		`MEMBER_RECOVER\b|MemberRecover\b|[rR]ecoverMember\b`,
	} {
		places := written(tree, kind, platform)
		require.GreaterOrEqual(t, len(places), 6, "%s: the test counts nothing", kind)
		require.LessOrEqual(t, len(places), 12, "%s is a kind of operation in\n%s", kind, strings.Join(places, "\n"))
	}
}

func TestTheReadmeShowsTheThreeWalks(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	for _, heading := range []string{"### A verb, in 7 places", "### A column, in 3",
		"### A kind of operation, in 12"} {
		require.True(t, strings.Contains(string(readme), heading), heading)
	}
}
