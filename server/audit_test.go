package server

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/platformtest"
)

// unaudited are mutations that change what no person decides, each with its reason: success leaves no row.
var unaudited = map[string]string{
	"mutation nodeHeartbeat":        "an agent's sign of life",
	"mutation reportOperation":      "an adapter's word, which is on the operation",
	"mutation renewOperationToken":  "an adapter's token for the operation it works on anyway",
	"mutation reportVolumes":        "an agent's word, which is on the volumes",
	"mutation reportNodeTask":       "an agent's word, which is on the task",
	"mutation appendNodeTaskOutput": "what a command printed, which is on the task",
	"mutation startNodeTask":        "an agent's word, which is on the task",
	"mutation ackNodeTask":          "an agent's word, which is on the task",
}

// unchanged are mutations that find a house as they would leave it: what they do to others is in their own tests.
var unchanged = map[string]string{
	"mutation grantEntitlement": "the app is the project's already",
}

// severally are mutations that are recorded once for each subject or project that they concern, each with its reason.
var severally = map[string]string{
	"mutation releaseAllocation": "with the allocation, by its key, the instance that uses it is torn down, by " +
		"the key for that",
	"mutation acceptControlPlane":   "what either end of a share does concerns the other: each project's audit has it",
	"mutation detachControlPlane":   "as for acceptControlPlane",
	"mutation declineControlPlane":  "as for acceptControlPlane",
	"mutation withdrawControlPlane": "as for acceptControlPlane",
	"mutation offerControlPlane":    "as for acceptControlPlane",
	"mutation checkAppOnboarding": "each condition that failed raises an entry of the gap log, which is a change " +
		"of its own",
}

// besides are the changes that a mutation makes beside its own, under the name of their own mutation.
var besides = map[string]string{"mutation checkAppOnboarding": "raiseGap"}

// fewest is how many mutations the recipes must be able to carry out: the others need more than a house.
const fewest = 20

// Every change that comes about leaves exactly one row for each subject and project that it concerns, which says who,
// with which key, to what, and under which correlation id; one that is refused leaves none that says it was allowed.
func TestEveryChangeIsInTheAuditOnce(t *testing.T) {
	t.Parallel()
	b, schema := newBench(t), sdl(t)
	carried := map[string]bool{}
	for _, r := range roots(schema) {
		if r.operation != ast.Mutation || unaudited[r.String()] != "" {
			continue
		}
		for i := range recipes[r.String()](&house{}, &house{}) {
			mine := b.build()
			for _, credential := range b.mighty(mine) {
				with := recipes[r.String()](mine, mine)[i]
				before := len(b.Audit())
				got := b.call(schema, r, credential, with)
				what := fmt.Sprintf("%s with %v: %+v", r, with, got)
				entries, failures := allowedOf(b.Audit()[before:])
				require.NotEqual(t, string(fault.Internal), got.code(), what)
				// which is recorded before the adapter is asked
				if len(got.Errors) > 0 && r.String() != "mutation invokeAction" {
					require.Empty(t, entries, what)
					continue
				}
				if len(failures) > 0 { // how an action ended that its app could not carry out
					require.Equal(t, []any{1, "mutation invokeAction", got.code()},
						[]any{len(failures), r.String(), failures[0].Code}, what)
					whole(t, r, failures, what)
				}
				if severally[r.String()] == "" {
					require.LessOrEqual(t, len(entries), 1, what)
				}
				carried[r.String()] = carried[r.String()] || len(entries) > 0
				whole(t, r, entries, what)
			}
		}
	}
	var silently []string
	for name, recorded := range carried {
		if !recorded && unchanged[name] == "" {
			silently = append(silently, name)
		}
	}
	require.Empty(t, silently, "they succeeded and left no audit row")
	require.GreaterOrEqual(t, len(carried), fewest, carried)
}

// whole fails when an entry lacks something, is of another request than the others, or repeats one.
func whole(t *testing.T, r root, entries []*db.AuditEntry, what string) {
	t.Helper()
	subjects := map[string]bool{}
	for _, entry := range entries {
		action, _, _ := strings.Cut(entry.Action, " ") // an app's action is named behind it
		if action != besides[r.String()] {
			require.Equal(t, strings.TrimPrefix(r.String(), "mutation "), action, what)
		}
		require.NotEmpty(t, entry.PermissionKey, what)
		require.NotEmpty(t, entry.ObjectID, what)
		require.NotEmpty(t, entry.CorrelationID, what)
		require.NotEmpty(t, entry.ActorID, what)
		require.NotEmpty(t, entry.Origin, what)
		require.Equal(t, []string{entries[0].CorrelationID, entries[0].ActorID},
			[]string{entry.CorrelationID, entry.ActorID}, what)
		subject := string(entry.ObjectID)
		if entry.ProjectID != nil {
			subject += " in " + string(*entry.ProjectID)
		}
		require.False(t, subjects[subject], "recorded twice: %s", what)
		subjects[subject] = true
	}
}

// mighty are credentials of people who may do most: the platform's staff with every role of the house, and the
// house's own admin.
func (b *bench) mighty(mine *house) []string {
	b.t.Helper()
	operator := b.Operator()
	b.Bind(operator, platformtest.In(authz.ProjectAdmin, mine.project))
	return []string{mine.admin, b.Session(operator)}
}

// allowedOf returns the entries of what was allowed, and apart those of how it failed afterwards.
func allowedOf(entries []*db.AuditEntry) (allowed, failed []*db.AuditEntry) {
	for _, entry := range entries {
		switch {
		case entry.Allowed && entry.Code == "":
			allowed = append(allowed, entry)
		case entry.Allowed:
			failed = append(failed, entry)
		}
	}
	return allowed, failed
}

// A read that is refused is recorded like a change that is; one that is allowed is not.
func TestRefusedReadsAreInTheAudit(t *testing.T) {
	t.Parallel()
	b, schema := newBench(t), sdl(t)
	victim, attacker := b.build(), b.build()
	for name, c := range map[string]struct {
		credential string
		with       arguments
		code       fault.Code
		key        string
		object     string
		actor      string
	}{
		"query instance": {attacker.admin, arguments{"id": victim.Instance}, fault.NotFound, "",
			string(victim.Instance), string(attacker.User)},
		"query auditEntries": {attacker.robot, arguments{"projectId": victim.Project}, fault.NotFound, "audit.read",
			string(victim.Project), string(attacker.Account)},
		"query nodes":      {attacker.admin, arguments{}, fault.Forbidden, "node.read", "", string(attacker.User)},
		"query auditChain": {attacker.admin, arguments{}, fault.Forbidden, "audit.verify", "", string(attacker.User)},
		"query planDrainMember": {attacker.admin, arguments{"input": object{"memberId": victim.Member}},
			fault.NotFound, "", string(victim.Member), string(attacker.User)},
	} {
		before := len(b.Audit())
		for _, r := range roots(schema) {
			if r.String() == name {
				require.Equal(t, string(c.code), b.call(schema, r, c.credential, c.with).code(), name)
			}
		}
		entries := b.Audit()[before:]
		require.Len(t, entries, 1, name)
		entry := entries[0]
		require.False(t, entry.Allowed)
		require.Equal(t, []string{string(c.code), c.object, c.actor},
			[]string{entry.Code, entry.ObjectID, entry.ActorID}, name)
		require.Equal(t, 1, entry.Repeats, "%s: recorded once", name)
		require.NotEmpty(t, entry.PermissionKey, name)
		if c.key != "" {
			require.Equal(t, c.key, entry.PermissionKey, name)
		}
		require.NotEmpty(t, entry.CorrelationID)
		require.NotEmpty(t, entry.Origin)
	}
	before := len(b.Audit())
	for _, r := range roots(schema) {
		if r.String() == "query instance" {
			require.Empty(t, b.call(schema, r, attacker.admin, arguments{"id": attacker.Instance}).Errors)
		}
	}
	require.Len(t, b.Audit(), before)
}
