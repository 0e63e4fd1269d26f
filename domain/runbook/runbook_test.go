package runbook_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/blocker"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/runbook"
	facts "github.com/gpuaas/app-platform/sdk/runbook"
)

// pages is where the pages are, from here.
const pages = "../../docs/runbooks"

func TestThePagesAreWhatTheValuesSay(t *testing.T) {
	t.Parallel()
	for _, book := range runbook.All() {
		page, err := os.ReadFile(filepath.Join(pages, book.Name+".md"))
		require.NoError(t, err)
		require.Equal(t, book.Page(), string(page), "%s.md is not what its runbook says: run make generate", book.Name)
	}
	list, err := os.ReadFile(filepath.Join(pages, "README.md"))
	require.NoError(t, err)
	listed, found := runbook.WithList(string(list))
	require.True(t, found, "README.md has no place for the list")
	require.Equal(t, listed, string(list), "README.md does not list the runbooks as they are: run make generate")
}

// Without its end mark it is unknown which part of the page is the list: the generator stops, and the page stays as it
// is.
func TestTheListsNeedBothTheirMarks(t *testing.T) {
	t.Parallel()
	const whole = "# All\n\n<!-- runbooks -->\nold\n<!-- end of runbooks -->\n\n" +
		"<!-- facts -->\nold\n<!-- end of facts -->\n"
	page, found := runbook.WithList(whole)
	require.True(t, found)
	require.Equal(t, "# All\n\n<!-- runbooks -->\n"+runbook.List()+"\n<!-- end of runbooks -->\n\n<!-- facts -->\n"+
		facts.FactList()+"\n<!-- end of facts -->\n", page)
	for _, mark := range []string{"<!-- runbooks -->", "<!-- end of runbooks -->", "<!-- facts -->",
		"<!-- end of facts -->"} {
		_, found := runbook.WithList(strings.Replace(whole, mark, "", 1))
		require.False(t, found, "without %s", mark)
	}
}

// The five of the documents that the platform was built from.
func TestEveryIncidentOfTheDocumentsHasItsRunbook(t *testing.T) {
	t.Parallel()
	var found []string
	for _, book := range runbook.All() {
		found = append(found, book.Incident)
	}
	require.Subset(t, found, []string{"App Artifact Lifecycle Incident", "App Catalog Incident",
		"App Platform Operator Incident", "App Runtime Billing Incident", "App Runtime Lifecycle Incident"})
}

func TestPlacesHaveNamesOfTheirOwn(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	once := func(ref string) {
		require.Regexp(t, `^[a-z-]+(/[a-z][a-z0-9-]*){1,2}$`, ref)
		require.False(t, seen[ref], "%s is there twice", ref)
		seen[ref] = true
	}
	for _, book := range runbook.All() {
		require.NotEmpty(t, book.Symptom)
		for _, check := range book.Checks {
			once(runbook.Branch{Runbook: book.Name, Check: check.Key}.Ref())
			require.Contains(t, []int{0, 2, 3}, len(check.Columns))
			require.Equal(t, len(check.Edges) > 0, len(check.Columns) > 0, "%s: edges and columns", check.Key)
			for _, edge := range check.Edges {
				once(runbook.Branch{Runbook: book.Name, Check: check.Key, Edge: edge.Key}.Ref())
				require.NotEmpty(t, edge.Do)
				if len(edge.On) > 0 { // triage answers with it, and shows both
					require.NotEmpty(t, edge.Means, edge.Key)
				}
				require.Equal(t, len(check.Columns) == 3, edge.Means != "", "%s: the column of what it means", edge.Key)
			}
		}
	}
}

// What a program goes by is known, and it knows what to do.
func TestConditionsAreAboutKnownFactsAndActionsAreOfTheAPI(t *testing.T) {
	t.Parallel()
	published, err := os.ReadFile("../../docs/api/schema.graphql")
	require.NoError(t, err)
	_, mutations, found := strings.Cut(string(published), "\ntype Mutation {")
	require.True(t, found)
	mutations, _, _ = strings.Cut(mutations, "\n}")
	for _, book := range runbook.All() {
		for _, check := range book.Checks {
			for _, edge := range check.Edges {
				for _, condition := range edge.Conditions() {
					require.True(t, facts.IsKnown(condition.Fact), "%s: no such fact as %s", edge.Key, condition.Fact)
				}
				for _, call := range edge.Act.Calls {
					require.Regexp(t, `(?m)^  `+call+`[(:]`, mutations, edge.Key)
				}
			}
		}
	}
}

// asks returns the one request that an edge is restricted to, in words; empty for an edge of any request.
func asks(edge runbook.Edge) string {
	for _, condition := range edge.When {
		if condition.Fact == "asked" && condition.Op == facts.OpIs {
			return " of " + condition.String()
		}
	}
	return ""
}

// A code in a runbook exists, and leads to one place only: one check, or one edge for each step and request.
func TestCodesAreKnownAndLeadToOnePlace(t *testing.T) {
	t.Parallel()
	known := func(code string) bool {
		return fault.Code(code).Known() || strings.Contains(blocker.Catalogue(), "| `"+code+"` |") ||
			code == "DISK_FULL" // a result of node tasks
	}
	taken := map[string]string{}
	once := func(code, where, ref string) {
		require.True(t, known(code), "%s goes by %s, which is no code of an error or a blocker", ref, code)
		require.Empty(t, taken[code+" "+where], "%s and %s go by %s", taken[code+" "+where], ref, code)
		taken[code+" "+where] = ref
	}
	for _, book := range runbook.All() {
		for _, check := range book.Checks {
			for _, code := range check.On {
				once(code, "any, as a check", book.Name+"/"+check.Key)
			}
			for _, edge := range check.Edges {
				for _, code := range edge.On {
					once(code, edge.Step+asks(edge), book.Name+"/"+check.Key+"/"+edge.Key)
				}
			}
		}
	}
}

func TestACodeFindsItsBranch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ code, step, want, asked string }{
		{"NODE_OFFLINE", "residue", "instance-stuck/stopping/residue-node-unreachable", ""},
		{"NODE_OFFLINE", "prepare", "instance-stuck/created/prepare-node-unreachable", ""},
		{"NODE_OFFLINE", "await", "operator/node-is-offline", ""},
		{"NODE_OFFLINE", "", "operator/node-is-offline", ""},
		{"RESIDUE_LEFT", "residue", "instance-stuck/stopping/residue-residue-left", ""},
		{"ADAPTER_UNAVAILABLE", "dispatch", "instance-stuck/starting/dispatch-adapter-unavailable", ""},
		{"NO_WORKER", "", "operator/no-worker", ""},
		{"DISK_FULL", "prepare", "artifact/does-not-reach-a-node/disk-full", ""},
		{"NOT_ENTITLED", "", "catalog/start/not-entitled", ""},
		{"ADAPTER_REJECTED", "dispatch", "instance-stuck/starting/dispatch-adapter-rejected", "INSTANCE_CREATE"},
		{"ADAPTER_REJECTED", "", "instance-stuck/action/by-the-app", "invokeAction"},
		{"INVALID_ARGUMENT", "", "instance-stuck/action/input", "invokeAction"},
	} {
		branch, ok := runbook.Find(c.code, c.step, c.asked)
		require.True(t, ok, c.code)
		require.Equal(t, c.want, branch.Ref())
		edge := strings.Count(c.want, "/") == 2
		require.Equal(t, edge, branch.Means != "", "%s: only an edge has a meaning", c.want)
		require.Equal(t, edge, branch.Do != "", "%s: only an edge states what to do", c.want)
	}
	for _, nowhere := range [][]string{{"NEVER_HEARD_OF", "await", ""}, {"INVALID_ARGUMENT", "", "createApp"},
		{"INVALID_ARGUMENT", "", ""}} {
		_, ok := runbook.Find(nowhere[0], nowhere[1], nowhere[2])
		require.False(t, ok, nowhere)
	}
}

// Whatever keeps an operation from going on has a place in a runbook; what merely goes on needs none.
func TestEveryBlockerOfAnOperationHasABranch(t *testing.T) {
	t.Parallel()
	for _, rule := range blocker.Rules() {
		if rule.UnderWay || rule.Scope == blocker.OfInstances {
			continue
		}
		_, found := runbook.Find(rule.Code, "", "")
		require.True(t, found, "no runbook says what to do at %s", rule.Code)
	}
}
