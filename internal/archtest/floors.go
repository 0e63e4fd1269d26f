package archtest

import (
	"fmt"
	"slices"
	"strings"
)

// Unit is a part of the house: a folder with everything below it that has no unit of its own.
type Unit struct {
	// Dir is the folder.
	Dir string
	// Floor counts from the ground, at 1. An import of another unit points to a lower floor.
	Floor int
	// Why says what the unit is. The README's picture prints it.
	Why string
}

// units is the whole house, floors from the ground. A package belongs to the unit with the longest folder that contains
// it; a package without a unit is a finding. README.md shows this table: a test compares the two.
var units = []Unit{
	{"domain", 1, "what is true: pure tables and rules, no I/O, no clock"},
	{"sdk", 1, "what outsiders build on: adapter kit, client, conformance suite"},
	{"transport", 1, "GraphQL over HTTP and WebSocket, with its guard: knows no platform"},
	{"migrations", 1, "versioned SQL: tables, row-level security, guards"},
	{"web", 1, "the console, embedded"},
	{"ent", 2, "what is stored: schema (written), generated (Ent's)"},
	{"authz", 2, "who may: permission keys, policy, decisions"},
	{"internal", 3, "plumbing: transactions, edge, dialling, fetching, custody, test databases"},
	{"service/kit", 4, "tools of the verbs: input checks, pages, idempotency, policy, placing"},
	{"service/ledger", 5, "what verbs write beside state: audit, event, operation, and its queue"},
	{"service", 6, "the verbs: a folder for each noun, a file for each verb, one transaction each"},
	{"graph", 7, "translates GraphQL to verbs; live groups, logins, deliveries"},
	{"workers", 7, "acts on what verbs recorded: engine, steps, reconcilers, feed"},
	{"server", 8, "the one composition: API and workers wired together"},
	{"cmd", 9, "a main for each program: server, command line, agent, adapters"},
	{"rig", 9, "starts, breaks or measures whole installations: lab, e2e, chaos, bench"},
	{"examples", 9, "what outsiders copy, on the sdk alone"},
}

// kits are test kits: only tests and other kits import them, never a program.
var kits = []string{"sdk/adaptertest", "sdk/client/clienttest", "sdk/exectest", "sdk/runbook/runbooktest",
	"sdk/tunnel/tunneltest", "internal/pgtest", "internal/otlptest", "rig/platformtest",
	"transport/internal/testschema"}

// programs lie below a kit's folder and are not kits: the command line contains the conformance suite.
var programs = []string{"sdk/adaptertest/conformance"}

// edge is an import from one room to a folder of another on the same floor that was reviewed. Together the edges have
// no circle.
type edge struct{ from, to, why string }

// edges are all imports between rooms of one floor.
var edges = []edge{
	{"domain", "sdk/nodetask", "outsiders and the platform check a node task's details by the same rules"},
	{"web", "transport/compress", "the console's files are compressed as a request prefers, by the one reading of " +
		"Accept-Encoding"},
	{"domain", "sdk/runbook", "adapters' runbooks are values of the same form as the platform's"},
	{"service/change", "service/contract", "a plan calls the adapter"},
	{"service/instance", "service/contract", "an app action goes to the adapter"},
	{"service/member", "service/contract", "its service has the calls by which its plans call the adapter"},
	{"service/instance", "service/change", "launch, upgrade and decommission are accepted like every change"},
	{"service/member", "service/change", "changes of members are accepted like every change"},
	{"service/retry", "service/change", "a retry is planned and accepted like the change that it repeats"},
	{"service/billing", "service/price", "a run reads the price book, and a rerate writes into it"},
	{"service/billing", "service/usage", "why a line costs what it costs shows the usage records that it counts"},
	{"service/breakglass", "service/identity", "an emergency role is granted as identity grants one"},
	{"service/breakglass", "service/ending", "an operator ends an operation as one ends whose end is refused"},
	{"service/triage", "service/blocker", "a report reads an operation's blockers in its own transaction"},
	{"service/triage", "service/orphan",
		"a report reads in its own transaction what an open operation has cost so far"},
	{"service/ending", "service/orphan", "what an ended operation leaves is listed as an orphan"},
	{"service/onboarding", "service/gap", "a failed check is noted in the gap log"},
	{"service/catalog", "service/onboarding", "a step to ACTIVE may need the conditions of onboarding"},
}

// outside are programs and packages that live beside the platform: of the module they import the sdk
// and packages below their own folder.
var outside = []struct{ Dir, Why string }{
	{"examples", "an outsider has nothing but the sdk"},
	{"cmd/appctl", "a client like any other"},
	{"cmd/node-agent", "a plain client of the public API, on a machine of its own"},
}

// unitOf returns the unit that a folder belongs to, and false when it has none.
func unitOf(dir string) (Unit, bool) {
	var best Unit
	for _, unit := range units {
		if within(dir, unit.Dir) && len(unit.Dir) > len(best.Dir) {
			best = unit
		}
	}
	return best, best.Dir != ""
}

// isKit reports whether a folder is part of a test kit.
func isKit(dir string) bool {
	contains := func(prefix string) bool { return within(dir, prefix) }
	return slices.ContainsFunc(kits, contains) && !slices.ContainsFunc(programs, contains)
}

// room returns the folder within which imports are free: the unit, and for verbs and programs the folder
// right below it, so that one noun or program does not reach into another.
func room(dir string) string {
	unit, _ := unitOf(dir)
	if unit.Dir != "service" && unit.Dir != "cmd" && unit.Dir != "examples" {
		return unit.Dir
	}
	rest := strings.TrimPrefix(dir, unit.Dir+"/")
	first, _, _ := strings.Cut(rest, "/")
	return unit.Dir + "/" + first
}

// Homeless finds packages that have no place in the house.
func Homeless(tree *Tree) (found []Finding) {
	for _, file := range tree.Files {
		if _, ok := unitOf(file.Dir); file.AST != nil && !ok {
			found = append(found, Finding{file.Path, 1, file.Dir,
				"the package has no floor: give it one in internal/archtest/floors.go"})
		}
	}
	return found
}

// Climbing finds imports that do not point down.
func Climbing(tree *Tree) (found []Finding) {
	for _, file := range tree.Files {
		if file.AST == nil {
			continue
		}
		for _, to := range tree.own(file) {
			if text := climbs(file, to.To); text != "" {
				found = append(found, Finding{file.Path, to.Line, file.Dir + " -> " + to.To, text})
			}
		}
	}
	return found
}

// climbs returns what is wrong with an import, and "" when nothing is. Tests may import kits, and other rooms of their
// own floor for fixtures.
func climbs(file *File, to string) string {
	here, there := room(file.Dir), room(to)
	from, _ := unitOf(file.Dir)
	target, known := unitOf(to)
	if !known || (isKit(to) && (file.Test || isKit(file.Dir))) {
		return ""
	}
	if isKit(to) {
		return fmt.Sprintf("%s is a test kit and must not be in a program", to)
	}
	if here == there || target.Floor < from.Floor || reviewed(here, to) || (file.Test && target.Floor == from.Floor) {
		return ""
	}
	return fmt.Sprintf("imports %s of floor %d from floor %d: an import points down", to, target.Floor, from.Floor)
}

// reviewed reports whether an import from a room is in the list.
func reviewed(here, to string) bool {
	return slices.ContainsFunc(edges, func(e edge) bool { return e.from == here && within(to, e.to) })
}

// UnusedEdges finds reviewed edges that no file needs, and edges that close a circle.
func UnusedEdges(tree *Tree) (found []Finding) {
	used := func(e edge) bool {
		return slices.ContainsFunc(tree.Written(), func(file *File) bool {
			return room(file.Dir) == e.from && slices.ContainsFunc(tree.own(file), func(to Import) bool {
				return within(to.To, e.to)
			})
		})
	}
	for _, e := range edges {
		if !used(e) {
			found = append(found, Finding{"internal/archtest/floors.go", 1, e.from + " -> " + e.to,
				"no file needs the reviewed edge: delete it"})
		}
		if reaches(e.to, e.from) {
			found = append(found, Finding{"internal/archtest/floors.go", 1, e.from + " -> " + e.to,
				"the reviewed edges close a circle"})
		}
	}
	return found
}

// reaches reports whether the edges lead from one room to another.
func reaches(from, to string) bool {
	return slices.ContainsFunc(edges, func(e edge) bool { return e.from == from && (e.to == to || reaches(e.to, to)) })
}

// Outsiders finds programs that use more of the platform than an outsider can.
func Outsiders(tree *Tree) (found []Finding) {
	for _, file := range tree.Files {
		home := outsider(file.Dir)
		if file.AST == nil || home == "" {
			continue
		}
		for _, to := range tree.own(file) {
			if !within(to.To, home) && !within(to.To, "sdk") {
				found = append(found, Finding{file.Path, to.Line, file.Dir + " -> " + to.To,
					fmt.Sprintf("imports %s: %s sees the sdk and its own packages only", to.To, home)})
			}
		}
	}
	return found
}

// outsider is the folder of the program that a package belongs to, when that program is one of
// outside or an adapter; empty otherwise.
func outsider(dir string) string {
	if rest, ok := strings.CutPrefix(dir, "cmd/"); ok {
		name, _, _ := strings.Cut(rest, "/")
		if strings.HasSuffix(name, "-controller") {
			return "cmd/" + name
		}
	}
	for _, program := range outside {
		if within(dir, program.Dir) {
			return program.Dir
		}
	}
	return ""
}

// SDKAlone finds imports of the platform by the sdk. The floors allow the sdk nothing above it, but
// would allow domain's side of floor 1; this says it without detour.
func SDKAlone(tree *Tree) (found []Finding) {
	for _, file := range tree.Files {
		if file.AST == nil || !within(file.Dir, "sdk") {
			continue
		}
		for _, to := range tree.own(file) {
			if !within(to.To, "sdk") {
				found = append(found, Finding{file.Path, to.Line, file.Dir + " -> " + to.To,
					"the sdk imports nothing of the platform, and this is " + to.To})
			}
		}
	}
	return found
}

// TestHelpers finds test libraries in files that programs are built from. A kit may hold them.
func TestHelpers(tree *Tree) (found []Finding) {
	for _, file := range tree.Files {
		if file.AST == nil || file.Test || isKit(file.Dir) {
			continue
		}
		for _, spec := range imports(file) {
			name := pathOf(spec)
			if name == "testing" || strings.HasPrefix(name, "testing/") ||
				strings.HasPrefix(name, "github.com/stretchr/testify") || name == "net/http/httptest" {
				found = append(found, Finding{file.Path, tree.line(spec.Pos()), file.Dir + " -> " + name,
					name + " must not be in a program"})
			}
		}
	}
	return found
}
