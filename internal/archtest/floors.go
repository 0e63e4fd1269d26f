package archtest

import (
	"fmt"
	"strings"
)

// Unit is a part of the house: a folder with all below it that has no unit of its own.
type Unit struct {
	// Dir is the folder.
	Dir string
	// Floor counts from the ground. An import of another unit points to a lower floor.
	Floor float64
	// Kit marks a test kit: programs never hold it, only tests and other kits do.
	Kit bool
	// Why says what the unit is and why it stands where it does.
	Why string
}

// units is the whole house, floors from the ground; the longest folder that fits a package is its
// unit. A package without a unit is a finding: it must be given its place.
var units = []Unit{
	{Dir: "domain", Floor: 1, Why: "what is true: pure tables and functions"},
	{Dir: "sdk", Floor: 1, Why: "what outsiders build on; imports nothing of the platform"},
	{Dir: "migrations", Floor: 1, Why: "versioned SQL"},
	{Dir: "graph/transport", Floor: 1, Why: "HTTP and WebSocket transports: know GraphQL and no platform"},
	{Dir: "web", Floor: 1, Why: "the console, embedded"},
	{Dir: "internal/filelock", Floor: 1, Why: "plumbing: a lock between processes"},
	{Dir: "internal/ociregistry", Floor: 1, Why: "plumbing: a local registry"},
	{Dir: "internal/edge", Floor: 1.5, Why: "plumbing: what stands between the network and the transports"},
	{Dir: "internal/dial", Floor: 1, Why: "plumbing: the only way out to addresses that others chose"},
	{Dir: "internal/signature", Floor: 1.2, Why: "plumbing: whether a trusted key has signed an artifact"},
	{Dir: "internal/supervise", Floor: 1, Why: "plumbing: child processes"},
	{Dir: "internal/archtest", Floor: 1, Why: "this test"},
	{Dir: "internal/postgres", Floor: 2, Why: "plumbing: the embedded database server"},
	{Dir: "ent/schema", Floor: 2, Why: "what is stored; its enums are the domain's"},
	{Dir: "ent/generated", Floor: 3, Why: "Ent's code"},
	{Dir: "ent", Floor: 4, Why: "the generator's settings"},
	{Dir: "internal/prereq", Floor: 3, Why: "plumbing: what the machine must have"},
	{Dir: "authz", Floor: 4, Why: "permission keys and decisions"},
	{Dir: "internal/tools", Floor: 4.2, Why: "programs that developers run"},
	{Dir: "internal/adapterclient", Floor: 4.2, Why: "calls to adapters, signed with authz/token, through the contract of the sdk"},
	{Dir: "internal/fetch", Floor: 4.1, Why: "plumbing: artifact sources of three kinds, asked as the operator allows"},
	{Dir: "internal/tx", Floor: 4.5, Why: "transactions as somebody: a credential becomes an actor and row-level security"},
	{Dir: "service/check", Floor: 4.6, Why: "a tool of the verbs: malformed input"},
	{Dir: "service/page", Floor: 4.6, Why: "a tool of the verbs: keyset pages"},
	{Dir: "service/rows", Floor: 4.6, Why: "a tool of the verbs: rows of joined reads"},
	{Dir: "service/idem", Floor: 4.6, Why: "a tool of the verbs: idempotency keys"},
	{Dir: "service/capacity", Floor: 4.7, Why: "a tool of the verbs: placing what is asked for, and quotas"},
	{Dir: "internal/custody", Floor: 4.2, Why: "plumbing: values in envelopes, their keys wrapped by a keeper"},
	{Dir: "service/impact", Floor: 4.7, Why: "a tool of the verbs: the blast radius of an operation"},
	{Dir: "service/supply", Floor: 4.7, Why: "a tool of the verbs: which artifacts the nodes of an instance may have"},
	{Dir: "service/overlay", Floor: 4.7, Why: "a tool of the verbs: what policy and entitlement leave of a project"},
	{Dir: "service/origin", Floor: 4.7, Why: "a tool of the verbs: the source that an artifact comes from"},
	{Dir: "service/audit", Floor: 5, Why: "ledger: every privileged attempt"},
	{Dir: "service/event", Floor: 5, Why: "ledger: what happened, and the feeds"},
	{Dir: "service/operation", Floor: 5.5, Why: "ledger: durable work; it writes audit and events of its own transitions"},
	{Dir: "service/change", Floor: 5.7, Why: "ledger: what the changes of a running instance have in common"},
	{Dir: "service", Floor: 6, Why: "the verbs, a folder a noun"},
	{Dir: "service/breakglass", Floor: 6.2, Why: "the verbs that set rules aside; what they leave is listed with the noun orphan, and a role is given as identity gives one"},
	{Dir: "graph/live", Floor: 6.5, Why: "live groups over the event feed; the schema stands above"},
	{Dir: "graph", Floor: 7, Why: "translates GraphQL to verbs"},
	{Dir: "workers", Floor: 7, Why: "acts on what the verbs recorded"},
	{Dir: "internal/lab", Floor: 4, Why: "plumbing: local nodes in namespaces"},
	{Dir: "internal/rig", Floor: 5, Why: "plumbing: a local installation, brought up and down in order"},
	{Dir: "internal/stack", Floor: 6, Why: "plumbing: the rig with the platform in it, seeded through the public client"},
	{Dir: "internal/bench", Floor: 8, Why: "measures the whole; a program"},
	{Dir: "internal/chaos", Floor: 8, Why: "kills parts of the whole and looks at what is left"},
	{Dir: "internal/e2e", Floor: 8, Why: "tests of the whole"},
	{Dir: "internal/contracttest", Floor: 2, Why: "the public contract: the SDL against its conventions and its past"},
	{Dir: "cmd", Floor: 8, Why: "a main per program"},
	{Dir: "examples", Floor: 2, Why: "what outsiders copy: built on the sdk alone"},
	{Dir: "sdk/adaptertest", Floor: 1.5, Kit: true, Why: "a platform for the tests of an adapter"},
	{Dir: "sdk/adaptertest/conformance", Floor: 1.4, Why: "conformance suite for adapters; appctl holds it, so it is no kit"},
	{Dir: "sdk/client/clienttest", Floor: 1.5, Kit: true, Why: "a stand-in API for client tests"},
	{Dir: "internal/pgtest", Floor: 4, Kit: true, Why: "a database per test"},
	{Dir: "internal/platformtest", Floor: 6, Kit: true, Why: "a platform's database with fixtures"},
	{Dir: "graph/transport/internal/testschema", Floor: 1.1, Kit: true, Why: "a schema for the transports' tests"},
}

// outside are programs and packages that live beside the platform: of the module they see the sdk
// and what lies below their own folder.
var outside = []struct{ Dir, Why string }{
	{"examples", "an outsider has nothing but the sdk"},
	{"cmd/appctl", "a client like any other"},
	{"cmd/node-agent", "a plain client of the public API, on a machine of its own"},
}

// unitOf is the unit that a folder belongs to; false when it has none.
func unitOf(dir string) (Unit, bool) {
	var best Unit
	for _, unit := range units {
		if within(dir, unit.Dir) && len(unit.Dir) > len(best.Dir) {
			best = unit
		}
	}
	return best, best.Dir != ""
}

// room is what may import within itself freely: the unit, and for verbs and programs the folder
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
			found = append(found, Finding{file.Path, 1, file.Dir, "the package has no floor: give it one in internal/archtest/floors.go"})
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

// climbs says what is wrong with an import; empty when nothing is. Tests may import kits, and
// units of their own floor for fixtures.
func climbs(file *File, to string) string {
	here, there := room(file.Dir), room(to)
	from, _ := unitOf(file.Dir)
	target, known := unitOf(to)
	if here == there || !known {
		return ""
	}
	if target.Kit {
		if file.Test || from.Kit {
			return ""
		}
		return fmt.Sprintf("%s is a test kit and must not be in a program", target.Dir)
	}
	if target.Floor < from.Floor || (file.Test && target.Floor == from.Floor) {
		return ""
	}
	return fmt.Sprintf("imports %s of floor %v from floor %v: an import points down", to, target.Floor, from.Floor)
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
				found = append(found, Finding{file.Path, to.Line, file.Dir + " -> " + to.To, "the sdk imports nothing of the platform, and this is " + to.To})
			}
		}
	}
	return found
}

// TestHelpers finds test libraries in files that programs are built from. A kit may hold them.
func TestHelpers(tree *Tree) (found []Finding) {
	for _, file := range tree.Files {
		unit, _ := unitOf(file.Dir)
		if file.AST == nil || file.Test || unit.Kit {
			continue
		}
		for _, spec := range imports(file) {
			name := pathOf(spec)
			if name == "testing" || strings.HasPrefix(name, "testing/") || strings.HasPrefix(name, "github.com/stretchr/testify") || name == "net/http/httptest" {
				found = append(found, Finding{file.Path, tree.line(spec.Pos()), file.Dir + " -> " + name, name + " must not be in a program"})
			}
		}
	}
	return found
}
