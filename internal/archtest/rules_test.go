package archtest_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/internal/archtest"
)

// offence is a file and how often a rule finds it at fault.
type offence struct {
	name         string
	rule         func(*archtest.Tree) []archtest.Finding
	path, source string
	want         int
}

// some is what a rule finds at least once.
const some = -1

// offences are files that each break a rule, and files beside them that do not.
var offences = []offence{
	{"a package without a floor", archtest.Homeless, "attic/x.go", "package attic", 1},
	{"a verb is at home", archtest.Homeless, "service/member/drain.go", "package member", 0},
	{"the domain imports a verb", archtest.Climbing, "domain/x/x.go", own("service/instance"), 1},
	{"a verb imports the domain", archtest.Climbing, "service/member/x.go", own("domain/fault"), 0},
	{"a noun imports a sibling", archtest.Climbing, "service/member/x.go", own("service/instance"), 1},
	{"a noun imports a ledger", archtest.Climbing, "service/member/x.go", own("service/ledger/audit"), 0},
	{"a noun imports itself", archtest.Climbing, "service/member/x.go", own("service/member/y"), 0},
	{"a test imports a sibling for fixtures", archtest.Climbing, "service/member/x_test.go",
		own("service/instance"), 0},
	{"a test imports upwards", archtest.Climbing, "service/member/x_test.go", own("graph"), 1},
	{"a ledger imports a noun", archtest.Climbing, "service/ledger/audit/x.go", own("service/member"), 1},
	{"a verb flags break-glass", archtest.Glass, "service/member/x.go",
		"package member\nvar x = Entry{BreakGlass: true}", 1},
	{"a verb takes a flag for break-glass", archtest.Glass, "service/member/x.go",
		"package member\ntype XInput struct{ BreakGlass bool }", 1},
	{"a verb asks for break-glass", archtest.Glass, "service/member/x.go",
		"package member\nvar x = authz.BreakGlassUse", 1},
	{"a filter looks for break-glass", archtest.Glass, "service/ledger/audit/x.go",
		"package audit\ntype Filter struct{ BreakGlass *bool }", 0},
	{"break-glass flags itself", archtest.Glass, "service/breakglass/x.go",
		"package breakglass\nvar x = Entry{BreakGlass: true}", 0},
	{"graph imports workers", archtest.Climbing, "graph/x.go", own("workers/engine"), 1},
	{"workers import graph", archtest.Climbing, "workers/x/x.go", own("graph"), 1},
	{"a transport imports the platform", archtest.Climbing, "transport/x.go", own("service/instance"), 1},
	{"a program imports another's packages", archtest.Climbing, "cmd/a/main.go", own("cmd/b/x"), 1},
	{"a program holds a test kit", archtest.Climbing, "cmd/a/main.go", own("rig/platformtest"), 1},
	{"a test holds a test kit", archtest.Climbing, "service/member/x_test.go", own("rig/platformtest"), 0},
	{"a kit holds a lower kit", archtest.Climbing, "rig/platformtest/x.go", own("internal/pgtest"), 0},
	{"the sdk imports the domain", archtest.SDKAlone, "sdk/adapter/x.go", own("domain/fault"), 1},
	{"the sdk's test imports the platform", archtest.SDKAlone, "sdk/adapter/x_test.go", own("authz"), 1},
	{"the sdk imports the sdk", archtest.SDKAlone, "sdk/adapter/x.go", own("sdk/client"), 0},
	{"an adapter imports a verb", archtest.Outsiders, "cmd/any-controller/main.go", own("service/instance"), 1},
	{"an adapter imports another", archtest.Outsiders, "cmd/any-controller/main.go",
		own("cmd/other-controller/internal/x"), 1},
	{"an adapter imports the kit", archtest.Outsiders, "cmd/any-controller/internal/any/x.go", own("sdk/adapter"), 0},
	{"an agent imports the domain", archtest.Outsiders, "cmd/node-agent/internal/task/x.go", own("domain/nodetask"), 1},
	{"an example imports plumbing", archtest.Outsiders, "examples/x/main.go", own("internal/tx"), 1},
	{"the server imports verbs", archtest.Outsiders, "cmd/app-platform/main.go", own("service/instance"), 0},
	{"a program holds testify", archtest.TestHelpers, "service/x/x.go",
		"package x\nimport \"github.com/stretchr/testify/require\"\n", 1},
	{"a program holds testing", archtest.TestHelpers, "rig/install/x.go", "package x\nimport \"testing\"\n", 1},
	{"a test holds testify", archtest.TestHelpers, "service/x/x_test.go",
		"package x\nimport \"github.com/stretchr/testify/require\"\n", 0},
	{"a kit holds testing", archtest.TestHelpers, "internal/pgtest/x.go", "package x\nimport \"testing\"\n", 0},
	{"money is a float", archtest.Floating, "domain/money/x.go", "package money\nvar x float64\n", 1},
	{"money is a literal of a float", archtest.Floating, "service/billing/x.go", "package billing\nvar x = 0.5\n", 1},
	{"money comes out of a float", archtest.Floating, "service/price/x.go", "package price\nvar x = y.Float64()\n", 1},
	{"a duration in floating point is billed", archtest.Floating, "domain/rating/x.go",
		"package rating\nvar x = y.Hours()\n", 1},
	{"a test of money uses a float", archtest.Floating, "domain/money/x_test.go", "package money\nvar x = 0.5\n", 0},
	{"progress is a float", archtest.Floating, "workers/x.go", "package workers\nvar x = 0.5\n", 0},
	{"the domain opens files", archtest.Impure, "domain/x/x.go", "package x\nimport \"os\"\n", 1},
	{"the domain takes a context", archtest.Impure, "domain/x/x.go", "package x\nimport \"context\"\n", 1},
	{"the domain reads the clock", archtest.Impure, "domain/x/x.go",
		"package x\nimport \"time\"\nvar now = time.Now()\n", 1},
	{"the domain counts in durations", archtest.Impure, "domain/x/x.go",
		"package x\nimport \"time\"\nconst patience = time.Second\n", 0},
	{"a verb reads its process's clock", archtest.OwnClock, "service/x/x.go",
		"package x\nimport \"time\"\nvar now = time.Now()\n", 1},
	{"a worker paces itself", archtest.OwnClock, "workers/x/x.go",
		"package x\nimport \"time\"\nvar now = time.Now()\n", 0},
	{"graph holds a client", archtest.Reaching, "graph/x.go", "package graph\ntype R struct { c *db.Client }\n", 1},
	{"graph queries an edge", archtest.Reaching, "graph/x.go", "package graph\nfunc f(m M) { m.QueryInstance() }\n", 1},
	{"graph saves", archtest.Reaching, "graph/x.go", "package graph\nfunc f(m M) { m.Save(nil) }\n", 1},
	{"graph writes SQL", archtest.Reaching, "graph/x.go", "package graph\nconst q = `SELECT id FROM project`\n", 1},
	{"graph imports the driver", archtest.Reaching, "graph/x.go", "package graph\nimport \"github.com/jackc/pgx/v5\"\n",
		1},
	{"graph holds a row", archtest.Reaching, "graph/x.go", "package graph\nfunc f(m *db.Member) { _ = m.ID }\n", 0},
	{"a verb names an app", archtest.AppNames, "service/x/x.go", "package x\n// drains slurmd first\n", 1},
	{"the SDL names an app", archtest.AppNames, "graph/schema/x.graphql",
		"\"Runs a Ray cluster.\"\ntype X { a: Int }\n", 1},
	{"a migration names an app", archtest.AppNames, "migrations/1_x.sql", "-- for kubernetes\n", 1},
	{"the console names an app", archtest.AppNames, "web/src/launch/launch.tsx",
		"const hint = 'like a Jupyter server'\n", 1},
	{"an array is no app", archtest.AppNames, "service/x/x.go", "package x\n// an array of trays\n", 0},
	{"a controller names its app", archtest.AppNames, "cmd/any-controller/x.go", "package x\n// slurm\n", 0},
	{"generated code lies about", archtest.Misfiled, "service/x/x.go",
		"// Code generated by hand. DO NOT EDIT.\n\npackage x\n", 1},
	{"written code lies among the generated", archtest.Misfiled, "graph/generated/model/x.go", "package model\n", 1},
	{"generated code lies in its folder", archtest.Misfiled, "graph/generated/model/x.go",
		"// Code generated by gqlgen. DO NOT EDIT.\n\npackage model\n", 0},
	{"a package says nothing", archtest.Undocumented, "service/x/x.go", "package x\n", 1},
	{"a function says nothing", archtest.Undocumented, "service/x/x.go",
		"// Package x is.\npackage x\nfunc Do() {}\n", 1},
	{"a method says nothing", archtest.Undocumented, "service/x/x.go",
		"// Package x is.\npackage x\ntype t struct{}\n// T is.\ntype T[K any] struct{}\nfunc (*T[K]) Do() {}\nfunc " +
			"(t) Do() {}\n", 1},
	{"a type says nothing", archtest.Undocumented, "service/x/x.go",
		"// Package x is.\npackage x\ntype T struct{}\n", 1},
	{"a variable says nothing", archtest.Undocumented, "service/x/x.go", "// Package x is.\npackage x\nvar A = 1\n", 1},
	{"a group speaks for all", archtest.Undocumented, "service/x/x.go",
		"// Package x is.\npackage x\n// The numbers.\nconst (\n\tA = 1\n\tB = 2\n)\n", 0},
	{"a long file", archtest.LongFiles, "service/x/x.go", "package x\n" + lines(360), 1},
	{"a large package", archtest.LargePackages, "service/x/x.go", "package x\n" + lines(2001), 1},
	{"a small package", archtest.LargePackages, "service/x/x.go", "package x\n" + lines(1900), 0},
	{"a noun imports one that was reviewed", archtest.Climbing, "service/instance/x.go", own("service/change"), 0},
	{"an edge that nothing needs", archtest.UnusedEdges, "internal/archtest/floors.go", "package archtest", some},
	{"a short file", archtest.LongFiles, "service/x/x.go", "package x\n" + lines(340), 0},
	{"a long function", archtest.LongFunctions, "service/x/x.go", "package x\nfunc f() {\n" + lines(80) + "}\n", 1},
	{"a table in a function", archtest.LongFunctions, "service/x/x.go",
		"package x\nfunc f() []int {\nreturn []int{\n" + lines(80) + "}\n}\n", 0},
	{"an if with two thoughts", archtest.StrayInitialisers, "service/x/x.go",
		"package x\nfunc f(a, b bool) {\nif a = g(); b {\n}\n}\n", 1},
	{"an if that tests what it assigns", archtest.StrayInitialisers, "service/x/x.go",
		"package x\nfunc f(b bool) {\nif err := g(); err != nil && b {\n}\n}\n", 0},
	{"a test sleeps", archtest.Sleeping, "service/x/x_test.go", "package x\nfunc f() { time.Sleep(1) }\n", 1},
	{"a kit sleeps", archtest.Sleeping, "internal/pgtest/x.go", "package x\nfunc f() { time.Sleep(1) }\n", 1},
	{"something happens by importing", archtest.Hidden, "service/x/x.go", "package x\nfunc init() {}\n", 1},
	{"a package ends the program", archtest.Hidden, "service/x/x.go", "package x\nfunc f() { os.Exit(1) }\n", 1},
	{"main ends the program", archtest.Hidden, "cmd/x/main.go", "package main\nfunc f() { os.Exit(1) }\n", 0},
	{"the global logger", archtest.Hidden, "service/x/x.go", "package x\nimport \"log\"\n", 1},
	{"work left undone", archtest.Unfinished, "service/x/x.go", "package x\n// TODO later\n", 1},
	{"a test blocks the others", archtest.Serial, "service/x/x_test.go",
		"package x\nfunc TestX(t *testing.T) { f(t) }\n", 1},
	{"a key that nothing asks for", archtest.Unasked, "authz/keys.go",
		"package authz\nvar catalogue = [...]KeyEntry{ Nobody: {\"nobody.asks\", \"x\"} }\n", 1},
	{"a type of event that nothing writes", archtest.Untold, "domain/lifecycle/event.go",
		"package lifecycle\nconst EventNobody EventType = \"apps.nobody.tells\"\n", 1},
	{"a move that nothing makes", archtest.Unmade, "domain/lifecycle/x.go", machineX, some},
	{"a statement with a state that does not exist", archtest.MisspeltStates, "service/x/x.go",
		"package x\nconst q = `UPDATE member SET status = 'ACTVE'`", 1},
	{"a statement with a state of some type", archtest.MisspeltStates, "domain/lifecycle/x.go",
		"package lifecycle\nconst A X = \"ACTIVE\"\nconst q = `UPDATE member SET status = 'ACTIVE'`", 0},
	{"a code that nothing answers with", archtest.Unraised, "domain/fault/catalogue.go",
		"package fault\nconst Never Code = \"NEVER\"\n", 1},
	{"a comment with a word that we do not use", archtest.Wordings, "service/x/x.go",
		"// Package x is for whoever\n// is told.\npackage x\n", 2},
	{"a line that is too wide", archtest.WideLines, "service/x/x_test.go",
		"package x\nvar s = \"" + strings.Repeat("wide ", 24) + "\"\nvar r = `" + strings.Repeat("wide ", 24) + "`\n",
		1},
	{"a comment that is too wide", archtest.WideLines, "service/x/x.go",
		"package x\nfunc f() {\n\t// " + strings.Repeat("wide ", 24) + "\n}\n", 1},
	{"a comment on a name", archtest.Wordings, "service/x/x.go",
		"package x\n// told returns it.\nfunc told() {}\n", 0},
	{"a comment that fits", archtest.WideLines, "service/x/x.go",
		"package x\n// " + strings.Repeat("wide ", 23) + "\n", 0},
	{"an error with a word that we do not use", archtest.Texts, "service/x/x.go",
		"package x\nvar e = errors.New(\"Nobody was told\")\nconst told, q = \"told\", `SELECT told FROM x`\n", 2},
	{"a document with a word that we do not use", archtest.Texts, "docs/x.md", "# X\nIt starts anew.\n", 1},
	{"the document of the words", archtest.Texts, "docs/style.md", "| anew | again |\n", 0},
	{"a test runs beside others", archtest.Serial, "service/x/x_test.go",
		"package x\nfunc TestX(t *testing.T) { t.Parallel() }\n", 0},
}

// machineX is a table of states that no code writes.
const machineX = "package lifecycle\nconst XOne X = \"ONE\"\nconst XTwo X = \"TWO\"\n" +
	"var xMachine = table[X]{\"x\", XOne, []Move[X]{{XOne, XTwo, \"why\"}}}\n"

func own(folder string) string {
	return "package x\nimport \"" + archtest.Module + "/" + folder + "\"\n"
}

func lines(n int) string { return string(slices.Repeat([]byte("\n"), n)) }

func TestEachRuleFindsItsOffenderAndNobodyElse(t *testing.T) {
	t.Parallel()
	for _, offence := range offences {
		t.Run(offence.name, func(t *testing.T) {
			t.Parallel()
			tree, err := archtest.Parse(map[string][]byte{offence.path: []byte(offence.source)})
			require.NoError(t, err)
			found := offence.rule(tree)
			if offence.want == some {
				require.NotEmpty(t, found)
				return
			}
			require.Len(t, found, offence.want, "%v", found)
		})
	}
}

func TestStatesInSQLAreThoseOfTheirColumn(t *testing.T) {
	t.Parallel()
	for statement, want := range map[string]int{
		"UPDATE member SET status = 'ACTIVE'":                                       0,
		"UPDATE member SET status = 'READY'":                                        1,
		"SELECT FROM member m JOIN lease l ON l.id = m.id WHERE l.status = 'READY'": 0,
		"SELECT FROM member m JOIN lease l ON l.id = m.id WHERE m.status = 'READY'": 1,
		"SELECT FROM elsewhere WHERE status = 'READY'":                              0,
	} {
		tree, err := archtest.Parse(map[string][]byte{
			"domain/lifecycle/x.go": []byte("package lifecycle\nconst Active MemberStatus = \"ACTIVE\"\n" +
				"const Ready LeaseStatus = \"READY\"\n"),
			"ent/schema/x.go":  []byte(twoTables),
			"service/x/x.go":   []byte("package x\nconst q = `" + statement + "`\n"),
			"migrations/1.sql": []byte("CREATE FUNCTION f() RETURNS void LANGUAGE sql AS $$ " + statement + " $$;"),
		})
		require.NoError(t, err)
		require.Len(t, archtest.MisspeltStates(tree), 2*want, statement)
	}
}

// twoTables have a column of the same name and of different types.
const twoTables = `package schema
func (Member) Annotations() []schema.Annotation { return table("member") }
func (Member) Fields() []ent.Field {
	return []ent.Field{field.Enum("status").GoType(lifecycle.MemberStatus(""))}
}
func (Lease) Annotations() []schema.Annotation { return table("lease") }
func (Lease) Fields() []ent.Field { return []ent.Field{field.Enum("status").GoType(lifecycle.LeaseStatus(""))} }
`

func TestEveryRuleHasAnOffender(t *testing.T) {
	t.Parallel()
	for _, rule := range archtest.Rules() {
		require.True(t, slices.ContainsFunc(offences, func(o offence) bool {
			tree, err := archtest.Parse(map[string][]byte{o.path: []byte(o.source)})
			require.NoError(t, err)
			return slices.ContainsFunc(rule.Check(tree), func(f archtest.Finding) bool { return f.Path == o.path })
		}), rule.Name)
	}
}

func TestAnExceptionThatExcusesNothingIsAFinding(t *testing.T) {
	t.Parallel()
	empty, err := archtest.Parse(nil)
	require.NoError(t, err)
	var stale int
	for _, rule := range archtest.Rules() {
		stale += len(rule.Check(empty))
	}
	require.Positive(t, stale)
}
