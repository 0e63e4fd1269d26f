package server

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/transport/wsapi"
)

// call sends a root field over its own transport.
func (b *bench) call(schema *ast.Schema, r root, credential string, with arguments) answer {
	b.t.Helper()
	text := document(schema, r, with)
	if r.operation == ast.Subscription {
		return b.watch(credential, text, with)
	}
	return b.post(credential, text, with)
}

func TestEveryRootFieldHasARecipe(t *testing.T) {
	t.Parallel()
	var names []string
	for _, r := range roots(sdl(t)) {
		names = append(names, r.String())
	}
	require.ElementsMatch(t, names, slices.Collect(maps.Keys(recipes)),
		"a recipe for each root field, and none for what is gone")
}

func TestNobodyGetsInWithoutACredentialOrWithGarbage(t *testing.T) {
	t.Parallel()
	b, schema := newBench(t), sdl(t)
	victim, attacker := b.build(), b.build()
	before := b.fingerprint()
	unknown, _ := token.Mint(token.Session)
	unknownKey, _ := token.Mint(token.Key)
	unknownNode, _ := token.Mint(token.Node)
	garbage := map[string]string{
		"none": "", "text": "garbage", "cut": unknown[:len(unknown)-1], "session": unknown, "key": unknownKey,
		"node":              unknownNode,
		"signed by another": strings.Repeat("eyJhbGciOiJub25lIn0.", 2) + "e30",
	}
	for _, r := range roots(schema) {
		for name, credential := range garbage {
			for _, with := range recipes[r.String()](victim, attacker) {
				got := b.call(schema, r, credential, with)
				what := fmt.Sprintf("%s, credential %s: %+v", r, name, got)
				require.Empty(t, got.Data, what)
				if r.operation == ast.Subscription && got.Closed != 0 {
					want := wsapi.CloseForbidden // another credential may be good
					if name == "none" {
						want = wsapi.CloseUnauthorized
					}
					require.Equal(t, want, got.Closed, what)
					continue
				}
				require.Equal(t, string(fault.Unauthenticated), got.code(), what)
				if name == "none" || name == "text" || name == "cut" || name == "signed by another" {
					require.Equal(t, http.StatusUnauthorized, got.Status, what)
				}
			}
		}
	}
	require.Equal(t, before, b.fingerprint(), "something was written")
}

// allowed is a call that a stranger may make, because what it answers is the stranger's own or the
// platform's. What is not here must be NOT_FOUND or FORBIDDEN.
type allowed struct {
	callers string
	reason  string
	// writes are the tables of which it changes the stranger's own rows.
	writes []string
}

// strangers is the reviewed list of what strangers may call, by root field.
var strangers = map[string]allowed{
	"query viewer": {"person robot operation", "says who is calling, and the caller is not the victim",
		nil},
	"query roles": {"person robot operation node enrolment",
		"the roles are the platform's: whoever is logged in sees them", nil},
	"query permissionKeys": {"person robot operation node enrolment", "the catalogue of keys is the platform's",
		nil},
	"query skuPrices": {"person robot operation",
		"list prices are the platform's: whoever is logged in sees them", nil},
	"query storageClasses": {"person robot operation",
		"storage classes are the platform's: whoever is logged in sees them", nil},
	"query apps": {"person robot operation",
		"the catalog is the platform's: every tenant sees the apps of its families", nil},
	"query app": {"person robot operation", "the catalog is the platform's", nil},
	"query artifacts": {"person robot operation",
		"the platform's artifacts, and those that manifests pin, are there for all; another tenant's own are not " +
			"among them",
		nil},
	"query artifactSources": {"person robot operation",
		"the platform's sources are there for all; another tenant's are not among them", nil},
	"query manifests": {"person robot operation",
		"the catalog is the platform's: manifest.read in any scope shows them", nil},
	"query evidenceRunners": {"person robot operation",
		"runners are the platform's: manifest.read in any scope shows them and their public keys", nil},
	"query lintManifest": {"person robot operation", "checks the caller's own document and stores nothing",
		nil},
	"mutation rotateNodeCredential": {"node", "makes a credential for the calling node itself",
		[]string{"node_credential"}},
	"mutation enrolNode": {"enrolment", "makes the node that the token was minted for",
		[]string{"compute_node", "node_credential", "node_enrolment"}},
	"mutation nodeHeartbeat": {"node", "says that the calling node itself lives",
		[]string{"compute_node", "node_proof", "node_gap"}},
	"mutation renewOperationToken": {"operation", "renews the calling token itself", nil},
	"query nodeVolumes":            {"node", "shows the volumes that the calling node's own agent looks after", nil},
	"mutation reportVolumes":       {"node", "says what the calling node itself found of its own volumes", nil},
	"query nodeNetwork":            {"node", "shows the network of the calling node's own members", nil},
	"subscription nodeTasks":       {"node", "shows the tasks of the calling node itself", nil},
}

// silent are mutations whose refusal leaves no audit row, each with its reason.
var silent = map[string]string{
	"mutation renewOperationToken": "asks for no permission key: it is refused to all but the one kind of token that " +
		"it is for",
}

func TestAnotherTenantsCredentialReadsAndWritesNothing(t *testing.T) {
	t.Parallel()
	b, schema := newBench(t), sdl(t)
	victim, attacker := b.build(), b.build()
	always := func(credential string) func() string { return func() string { return credential } }
	callers := []struct {
		kind       string
		credential func() string
	}{
		{"person", always(attacker.admin)}, {"robot", always(attacker.robot)}, {"operation", always(attacker.token)},
		{"node", always(attacker.node)}, {"enrolment", b.enrolment},
	}
	refused := map[string]bool{}
	for _, r := range roots(schema) {
		for _, caller := range callers {
			for _, with := range recipes[r.String()](victim, attacker) {
				what := fmt.Sprintf("%s by %s with %v", r, caller.kind, with)
				credential := caller.credential()
				before := b.fingerprint()
				got := b.call(schema, r, credential, with)
				b.keepsSecrets(victim, with, got, what)
				open := strangers[r.String()]
				if slices.Contains(strings.Fields(open.callers), caller.kind) {
					require.Empty(t, got.Errors, what)
					require.NotEmpty(t, got.Data, what)
					b.unchangedBut(before, open.writes, what)
					continue
				}
				require.Contains(t, []string{string(fault.NotFound), string(fault.Forbidden)}, got.code(), "%s: %+v",
					what, got)
				require.Empty(t, got.Data, what)
				b.unchangedBut(before, nil, what)
				if r.operation == ast.Mutation && caller.kind != "node" && caller.kind != "enrolment" {
					refused[strings.TrimPrefix(r.String(), "mutation ")+" "+caller.kind] = true
				}
			}
		}
	}
	b.audited(refused, attacker)
}

// keepsSecrets fails when the answer holds an id of the victim's that the caller did not name itself.
func (b *bench) keepsSecrets(victim *house, with arguments, got answer, what string) {
	b.t.Helper()
	named := fmt.Sprint(with)
	for _, secret := range victim.secrets() {
		if !strings.Contains(named, secret) {
			require.NotContains(b.t, got.Raw, secret, what)
		}
		require.NotContains(b.t, got.Data, secret, what)
	}
}

// unchangedBut fails when a table other than those named has changed.
func (b *bench) unchangedBut(before map[string]string, tables []string, what string) {
	b.t.Helper()
	after := b.fingerprint()
	for name := range before {
		if !slices.Contains(tables, name) {
			require.Equal(b.t, before[name], after[name], "%s: the table %s was written", what, name)
		}
	}
}

// audited fails when a refusal left no trace: who tried, with which key, and what the answer was. A node and an
// enrolment are not checked: the database refuses their login role before any key is required.
func (b *bench) audited(refused map[string]bool, attacker *house) {
	b.t.Helper()
	kinds := map[string]string{"USER": "person", "SERVICE_ACCOUNT": "robot", "OPERATION": "operation", "NODE": "node"}
	traced := map[string]bool{}
	for _, entry := range b.Audit() {
		if entry.Allowed || entry.Code == "" || entry.ActorKind == "ENROLMENT" {
			continue
		}
		require.NotEmpty(b.t, entry.PermissionKey, entry.Action)
		require.NotEmpty(b.t, entry.CorrelationID, entry.Action)
		require.Contains(b.t, []string{string(fault.NotFound), string(fault.Forbidden)}, entry.Code)
		require.Contains(b.t, []string{string(attacker.User), string(attacker.Account), string(attacker.Operation),
			string(attacker.Node)}, entry.ActorID)
		traced[entry.Action+" "+kinds[entry.ActorKind]] = true
	}
	for call := range refused {
		field, _, _ := strings.Cut(call, " ")
		if silent["mutation "+field] == "" {
			require.True(b.t, traced[call], "%s was refused and left no audit row", call)
		}
	}
}

// withheld are reads that a tenant's own admin is refused, by root field and the house's id that it names.
var withheld = map[string]string{
	"query auditChain":       "audit.verify is the platform's",
	"query auditCheckpoints": "audit.verify is the platform's",
	"query adapters":         "adapter.read is the platform's",
	"query nodes":            "node.read is the platform's",
	"query appOnboarding": "of the house's own app it is answered, and that of the platform's app is its " +
		"publisher's",
	"query gaps": "without an app it is the platform's whole list, and the house's app is published by " +
		"the platform",
	"query nodeMembers":        "node.read is the platform's",
	"query fleet":              "node.read is the platform's",
	"query tenants":            "tenant.read on the platform is its staff's",
	"query planRetryOperation": "no operation of the house has failed",
	"query planRerate":         "sku.price.manage is the platform's",
	"query planReopenPeriod":   "billing.manage is the platform's",
	"query canaryReport":       "the house's app is published by the platform, whose the report is",
	"query node":               "the house has ids of kinds that are no Relay nodes, and its node is the platform's",
}

// The same calls by who may make them: without this, a recipe that can never work would look like a
// wall that holds.
func TestTheSameReadsWorkForTheHouseItself(t *testing.T) {
	t.Parallel()
	b, schema := newBench(t), sdl(t)
	mine := b.build()
	for _, r := range roots(schema) {
		if r.operation == ast.Mutation || r.String() == "subscription nodeTasks" ||
			slices.Contains([]string{"query nodeNetwork", "query nodeVolumes"}, r.String()) {
			continue
		}
		var answered int
		for _, with := range recipes[r.String()](mine, mine) {
			// Logs need a node's agent, which the house has none of: TestLogsAreFollowedThroughTheTunnel reads them.
			if r.String() == "subscription memberLogs" {
				continue
			}
			// A feed of a project begins now, so it would have nothing to say until something happens.
			if r.String() == "subscription projectActivity" {
				continue
			}
			got := b.call(schema, r, mine.admin, with)
			if withheld[r.String()] == "" {
				require.Empty(t, got.Errors, "%s with %v", r, with)
			}
			if got.Data != "" {
				answered++
			}
		}
		if r.String() == "query node" {
			require.GreaterOrEqual(t, answered, 14, "objects of the house that it can see by id")
		} else if withheld[r.String()] == "" && r.String() != "subscription projectActivity" &&
			r.String() != "subscription memberLogs" {
			require.Positive(t, answered, r.String())
		}
	}
}
