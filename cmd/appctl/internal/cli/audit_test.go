package cli_test

import (
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/auditchain"
	"github.com/gpuaas/app-platform/sdk/client/clienttest"
)

// ledger is an audit with its chain, as a platform would show it.
type ledger struct {
	*rig
	t           *testing.T
	key         ed25519.PrivateKey
	links       []auditchain.Link
	checkpoints []auditchain.Checkpoint
	beside      []auditchain.Entry // in the audit, and in no link
	offline     bool
}

func newLedger(t *testing.T, n int) *ledger {
	t.Helper()
	l := &ledger{rig: newRig(t), t: t, key: ed25519.NewKeyFromSeed([]byte(strings.Repeat("k", 32)))}
	l.extend(n)
	number := func(value any) int {
		var n int
		_, err := fmt.Sscan(fmt.Sprint(value), &n)
		require.NoError(t, err)
		return n
	}
	l.Handle("auditChain", func(call clienttest.Call) (any, error) {
		out := []any{}
		for _, link := range l.links {
			if link.Seq > number(call.Args["afterSeq"]) && len(out) < number(call.Args["first"]) {
				out = append(out, object{"seq": link.Seq, "entry": shown(link.Entry), "canonical": link.Canonical,
					"leaf": link.Leaf, "link": link.Link, "sealedAt": link.SealedAt})
			}
		}
		return out, nil
	})
	l.Handle("auditCheckpoints", func(call clienttest.Call) (any, error) {
		out := []any{}
		for _, one := range l.checkpoints {
			if one.Seq > number(call.Args["afterSeq"]) {
				out = append(out, object{"id": one.ID, "seq": one.Seq, "link": one.Link, "signature": one.Signature,
					"createdAt": one.CreatedAt})
			}
		}
		return out, nil
	})
	l.Handle("searchAudit", func(clienttest.Call) (any, error) {
		edges := []any{}
		for _, link := range l.links {
			edges = append(edges, object{"cursor": "c", "node": shown(link.Entry)})
		}
		for _, entry := range l.beside {
			edges = append(edges, object{"cursor": "c", "node": shown(entry)})
		}
		return object{"edges": edges, "pageInfo": object{"hasNextPage": false}}, nil
	})
	l.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if l.offline {
			w.WriteHeader(http.StatusBadGateway)
			return true
		}
		if r.URL.Path != "/.well-known/jwks.json" {
			return false
		}
		require.Empty(t, r.Header.Get("Authorization"), "no credential goes with it")
		_, _ = w.Write(l.keys())
		return true
	})
	return l
}

func (l *ledger) keys() []byte {
	set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: l.key.Public(), KeyID: "k1", Algorithm: "EdDSA",
		Use: "sig"}}}
	text, err := json.Marshal(set)
	require.NoError(l.t, err)
	return text
}

// extend seals n more entries and signs the end.
func (l *ledger) extend(n int) {
	l.t.Helper()
	at := time.Date(2026, 11, 20, 10, 0, 0, 123000, time.UTC)
	for range n {
		seq := len(l.links) + 1
		l.links = append(l.links, auditchain.Link{Seq: seq, SealedAt: at.Add(time.Hour), Entry: auditchain.Entry{
			ID: fmt.Sprintf("aud_%d", seq), ActorKind: "USER", ActorID: fmt.Sprintf("usr_%d", seq%3), ActorName: "Ada",
			PermissionKey: "apps.instance.create",
			Action:        "launchInstance", Allowed: seq%2 == 0, After: json.RawMessage(fmt.Sprintf(`{"n":%d}`, seq)),
			Repeats:       1,
			CorrelationID: "c", CreatedAt: at}})
	}
	l.reseal(len(l.links) - n)
	l.sign()
}

// reseal computes the links of the chain again from the entry at index after on.
func (l *ledger) reseal(after int) {
	head := auditchain.Hash{}
	for i := range l.links {
		link := &l.links[i]
		canonical, err := link.Entry.Canonical()
		require.NoError(l.t, err)
		leaf := auditchain.Leaf(canonical)
		head = auditchain.Next(head, leaf)
		if i >= after {
			link.Seq, link.Canonical, link.Leaf, link.Link = i+1, string(canonical), leaf.String(), head.String()
		}
	}
}

func (l *ledger) sign() {
	last := l.links[len(l.links)-1]
	signature, err := auditchain.Sign(auditchain.Statement{Issuer: "http://server", Seq: last.Seq, Link: last.Link,
		Time: last.SealedAt}, l.key, "k1")
	require.NoError(l.t, err)
	l.checkpoints = append(l.checkpoints, auditchain.Checkpoint{ID: fmt.Sprintf("chk_%d", last.Seq), Seq: last.Seq,
		Link: last.Link, Signature: signature, CreatedAt: last.SealedAt})
}

func shown(e auditchain.Entry) object {
	return object{"id": e.ID, "actor": object{"kind": e.ActorKind, "id": e.ActorID, "name": e.ActorName},
		"permissionKey": e.PermissionKey,
		"action":        e.Action, "allowed": e.Allowed, "objectId": e.ObjectID, "before": e.Before, "after": e.After,
		"reason": e.Reason, "code": e.Code,
		"repeats": e.Repeats, "correlationId": e.CorrelationID, "origin": e.Origin, "breakGlass": e.BreakGlass,
		"createdAt": e.CreatedAt}
}

// edit changes an entry as it is shown, with the form that goes with it.
func (l *ledger) edit(seq int, change func(*auditchain.Entry)) {
	link := &l.links[seq-1]
	change(&link.Entry)
	canonical, err := link.Entry.Canonical()
	require.NoError(l.t, err)
	link.Canonical = string(canonical)
}

// reverify runs verify and answers its finding, nil when the chain holds.
func (l *ledger) reverify(args ...string) *auditchain.Finding {
	l.t.Helper()
	got := l.run(l.t.Context(), "", append([]string{"audit", "verify", "-o", "json"}, args...)...)
	var answer struct {
		Holds   bool
		Finding *auditchain.Finding
	}
	require.NoError(l.t, json.Unmarshal([]byte(got.stdout), &answer), got.stdout+got.stderr)
	require.Equal(l.t, answer.Finding == nil, answer.Holds)
	require.Equal(l.t, answer.Finding != nil, got.code == 1, got.stderr)
	return answer.Finding
}

func TestAChainThatHoldsIsSaidToHold(t *testing.T) {
	t.Parallel()
	l := newLedger(t, 7)
	require.Nil(t, l.reverify())
	got := l.run(t.Context(), "", "audit", "verify")
	require.Zero(t, got.code, got.stderr)
	require.Contains(t, got.stdout,
		"the chain is intact: 7 links, 1 signed checkpoint; the last link is 7 "+l.links[6].Link)
}

func TestVerifyNamesTheFirstTamperedRow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tamper  func(*ledger)
		problem auditchain.Problem
		seq     int
		entry   string
		field   string
	}{
		"a verdict changed": {func(l *ledger) {
			l.edit(4, func(e *auditchain.Entry) { e.Allowed = false })
			l.edit(6, func(e *auditchain.Entry) { e.Reason = "x" })
		}, auditchain.Changed, 4, "aud_4", "allowed"},
		"a form that is not the fields'": {func(l *ledger) {
			l.links[2].Entry.Reason = "invented"
		}, auditchain.Changed, 3,
			"aud_3", "reason"},
		"a row gone": {func(l *ledger) {
			l.links[4].Canonical, l.links[4].Entry = "", auditchain.Entry{ID: "aud_5"}
		}, auditchain.Missing, 5, "aud_5", ""},
		"a link gone": {func(l *ledger) { l.links = append(l.links[:2:2], l.links[3:]...) },
			auditchain.Missing, 3, "", ""},
		"the end gone": {func(l *ledger) { l.links = l.links[:5] }, auditchain.Truncated, 6, "", ""},
		"rewritten as a whole": {func(l *ledger) {
			l.edit(4, func(e *auditchain.Entry) { e.ActorID = "usr_9" })
			l.reseal(3)
		}, auditchain.Rewritten, 1, "", ""},
		"a checkpoint forged": {func(l *ledger) { l.checkpoints[0].Link = l.links[2].Link }, auditchain.Unsigned,
			7, "", ""},
		"an entry beside the chain": {func(l *ledger) {
			l.beside = []auditchain.Entry{{ID: "aud_stranger", CreatedAt: l.links[0].Entry.CreatedAt}}
		}, auditchain.Inserted, 0, "aud_stranger", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLedger(t, 7)
			c.tamper(l)
			found := l.reverify()
			require.NotNil(t, found)
			require.Equal(t, c.problem, found.Problem, found.Text)
			require.Equal(t, []any{c.seq, c.entry}, []any{found.Seq, found.EntryID}, found.Text)
			require.Equal(t, c.field, found.Field, found.Text)
			got := l.run(t.Context(), "", "audit", "verify")
			require.Equal(t, 1, got.code)
			require.Contains(t, got.stderr, "tampered")
		})
	}
}

func TestAnExportIsGoneOnWithAndVerifiedOffline(t *testing.T) {
	t.Parallel()
	l := newLedger(t, 600) // more than a page
	path, keys := filepath.Join(l.dir, "audit.jsonl"), l.file(t, "keys.json", string(l.keys()))
	got := l.run(t.Context(), "", "audit", "export", path)
	require.Zero(t, got.code, got.stderr)
	require.Contains(t, got.stdout, "added 600 links and 1 checkpoint")
	whole, err := os.ReadFile(path)
	require.NoError(t, err)

	require.NoError(t, os.Truncate(path, int64(len(whole)/2))) // as if it had been killed
	l.extend(3)
	require.Zero(t, l.run(t.Context(), "", "audit", "export", path).code)
	require.Zero(t, l.run(t.Context(), "", "audit", "export", path).code, "nothing more")
	l.offline = true
	require.Nil(t, l.reverify("--file", path, "--keys", keys))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, 603+2, strings.Count(string(text), "\n"))

	require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(text), `"after":{"n":550}`, `"after":{"n":551}`,
		1)), 0o600))
	found := l.reverify("--file", path, "--keys", keys)
	require.Equal(t, []any{auditchain.Changed, 550}, []any{found.Problem, found.Seq}, found.Text)
}

func TestWhatWasKeptEarlierShowsWhatWasRewritten(t *testing.T) {
	t.Parallel()
	l := newLedger(t, 9)
	export, kept := filepath.Join(l.dir, "audit.jsonl"), filepath.Join(l.dir, "kept.jsonl")
	require.Zero(t, l.run(t.Context(), "", "audit", "export", export).code)
	require.Zero(t, l.run(t.Context(), "", "audit", "export", kept, "--checkpoints").code)
	l.extend(2)
	require.Nil(t, l.reverify("--checkpoint", kept, "--against", export))

	l.edit(4, func(e *auditchain.Entry) { e.CreatedAt = e.CreatedAt.Add(time.Hour) })
	l.reseal(3)
	l.checkpoints = nil // and nobody signed anything
	require.Nil(t, l.reverify(), "it holds together")
	require.Equal(t, auditchain.Rewritten, l.reverify("--checkpoint", kept).Problem)
	found := l.reverify("--against", export)
	require.Equal(t, []any{auditchain.Changed, 4, "aud_4", "createdAt"},
		[]any{found.Problem, found.Seq, found.EntryID, found.Field}, found.Text)
	l.links = l.links[:3]
	require.Equal(t, auditchain.Truncated, l.reverify("--checkpoint", kept).Problem)
	require.Equal(t, auditchain.Truncated, l.reverify("--against", export).Problem)
}

func TestVerifyRefusesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	l := newLedger(t, 2)
	text := l.file(t, "text", "no export\n")
	for _, args := range [][]string{
		{"--file", text}, {"--file", filepath.Join(l.dir, "none")}, {"--keys", text}, {"--checkpoint", text},
	} {
		got := l.run(t.Context(), "", append([]string{"audit", "verify"}, args...)...)
		require.Equal(t, 2, got.code, "%v: %s", args, got.stderr)
	}
	require.Equal(t, 2, l.run(t.Context(), "", "audit", "export", text).code, "somebody else's file is left alone")
	kept, err := os.ReadFile(text)
	require.NoError(t, err)
	require.Equal(t, "no export\n", string(kept))
}

func TestASearchAsksForWhatItsFlagsSay(t *testing.T) {
	t.Parallel()
	l := newLedger(t, 1)
	got := l.run(t.Context(), "", "audit", "search", "--platform", "--actor", "usr_1", "--key", "apps.instance.create",
		"--denied", "--break-glass",
		"--from", "2026-11-01T00:00:00Z", "--actor-kind", "USER")
	require.Zero(t, got.code, got.stderr)
	calls := l.Calls()
	filter := calls[len(calls)-1].Args["filter"].(map[string]any)
	require.Equal(t, "usr_1", filter["actorId"])
	require.Equal(t, false, filter["allowed"])
	require.Equal(t, true, filter["breakGlass"])
	require.Equal(t, "2026-11-01T00:00:00Z", filter["from"])
	require.NotContains(t, filter, "projectId")
	require.NotContains(t, filter, "to")
	require.Equal(t, 2, l.run(t.Context(), "", "audit", "search", "--from", "yesterday").code)
}

func TestBreakGlassSaysWhy(t *testing.T) {
	t.Parallel()
	l := newLedger(t, 1)
	l.Handle("breakGlassEndOperation", func(clienttest.Call) (any, error) {
		return operation("INSTANCE_CREATE", "FAILED", 40), nil
	})
	l.Handle("breakGlassGrantRole", func(clienttest.Call) (any, error) {
		return object{"id": "rb_1", "subjectId": "usr_1", "role": "tenant_admin", "tenantId": "ten_1"}, nil
	})
	require.Equal(t, 2, l.run(t.Context(), "", "break-glass", "end-operation", "op_1").code, "no reason")
	require.Zero(t, l.run(t.Context(), "", "break-glass", "end-operation", "op_1", "--reason",
		"the adapter is gone for good", "--incident", "INC-1").code)
	calls := l.Calls()
	require.Equal(t, object{"operationId": "op_1", "reason": "the adapter is gone for good", "incident": "INC-1"},
		calls[len(calls)-1].Input())
	got := l.run(t.Context(), "", "break-glass", "grant", "usr_1", "tenant_admin", "--tenant", "ten_1", "--reason",
		"the tenant's admins are locked out", "--minutes", "30")
	require.Zero(t, got.code, got.stderr)
	calls = l.Calls()
	require.Equal(t, "30", fmt.Sprint(calls[len(calls)-1].Input()["durationMinutes"]))
}
