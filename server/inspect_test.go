package server

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// An adapter whose calls are narrowed holds, while it only looks, a token that runs what the manifest names: with that
// token it can neither run a command of its own, nor write a file, nor redeem a secret. The audit names the requester.
func TestATokenThatOnlyLooksRunsNothingElse(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	h := b.build()
	b.namesTail(h)
	issued, err := operation.IssueCallToken(t.Context(), b.Ring, operation.Call{
		Instance: ids.ID(h.Instance), Keys: operation.LookKeys(true), Life: time.Minute,
		For: authz.Ref{Kind: "USER", ID: string(h.User), Name: "Mo"},
	}, time.Now())
	require.NoError(t, err)
	run := func(key, kind string, spec object) answer {
		return b.post(issued.Text, `mutation($input: RunNodeTaskInput!) { runNodeTask(input: $input) { id } }`,
			arguments{"input": object{
				"memberId": h.Member, "kind": kind, "spec": spec, "timeoutSeconds": 10, "idempotencyKey": key,
			}})
	}
	before := b.Count("node_task", "")
	for name, attack := range map[string]struct {
		kind string
		spec object
	}{
		"free":   {"RUN", object{"command": []string{"sh", "-c", "id"}}},
		"shell":  {"RUN", object{"command": []string{"tail", "-n", "1;id", "/var/log/app"}}},
		"option": {"RUN", object{"command": []string{"tail", "-n", "-f", "/var/log/app"}}},
		"file":   {"RUN", object{"command": []string{"tail", "-n", "1", "/etc/shadow"}}},
		"stdin":  {"RUN", object{"command": []string{"tail", "-n", "1", "/var/log/app"}, "stdin": "x"}},
		"env": {"RUN", object{"command": []string{"tail", "-n", "1", "/var/log/app"},
			"env": []object{{"name": "LD_PRELOAD", "value": "/x.so"}}}},
		"dir":     {"RUN", object{"command": []string{"tail", "-n", "1", "/var/log/app"}, "workDir": "/tmp"}},
		"write":   {"WRITE_FILE", object{"path": "/x", "content": "x"}},
		"probing": {"PROBE", object{"exec": object{"command": []string{"id"}}, "attempts": 1}},
	} {
		got := run(name, attack.kind, attack.spec)
		require.Equal(t, string(fault.Forbidden), got.code(), "%s: %s", name, got.Raw)
		require.Contains(t, got.paths(), "input.spec", name)
	}
	got := b.post(issued.Text, `mutation($id: ID!) { redeemRuntimeSecret(secretId: $id) { __typename } }`,
		arguments{"id": h.Secret})
	require.Equal(t, string(fault.NotFound), got.code(), "a secret: %s", got.Raw)
	require.Equal(t, before, b.Count("node_task", ""), "nothing was written")

	got = run("named", "RUN", object{"command": []string{"tail", "-n", "20", "/var/log/app"}})
	require.Empty(t, got.Errors, got.Raw)
	got = run("process", "INSPECT_PROCESS", object{"name": "app"})
	require.Empty(t, got.Errors, got.Raw)
	require.Equal(t, 2, b.Count("audit_entry",
		"action = 'runNodeTask' AND allowed AND permission_key = 'task.inspect' AND after->'requester'->>'id' = $1",
		h.User))
}

// namesTail has the manifest of the house's instance name one inspection.
func (b *bench) namesTail(h *house) {
	b.t.Helper()
	var document map[string]any
	require.NoError(b.t, json.Unmarshal(h.document, &document))
	document["inspections"] = []map[string]any{{"name": "log",
		"command":   []string{"tail", "-n", "{lines}", "/var/log/app"},
		"arguments": []map[string]any{{"name": "lines", "type": "integer"}}}}
	encoded, err := json.Marshal(document)
	require.NoError(b.t, err)
	b.SQL(`ALTER TABLE manifest DISABLE TRIGGER USER`)
	b.SQL(`UPDATE manifest SET document = $1 WHERE id = $2`, encoded, h.Manifest)
}

// Health is looked at for as long as an instance runs. Such looks write no audit, whether the adapter's calls are
// narrowed or not; what is more than a look does, and so does a look that somebody requested.
func TestHealthLooksWriteNoAudit(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	h := b.build()
	b.namesTail(h)
	run := func(narrow bool, requester authz.Ref, key, kind string, spec object) {
		t.Helper()
		issued, err := operation.IssueCallToken(t.Context(), b.Ring, operation.Call{
			Instance: ids.ID(h.Instance), Keys: operation.LookKeys(narrow), Life: time.Minute, For: requester,
		}, time.Now())
		require.NoError(t, err)
		got := b.post(issued.Text, `mutation($input: RunNodeTaskInput!) { runNodeTask(input: $input) { id } }`,
			arguments{"input": object{"memberId": h.Member, "kind": kind, "spec": spec, "timeoutSeconds": 10,
				"idempotencyKey": key}})
		require.Empty(t, got.Errors, got.Raw)
	}
	written := func() int { return b.Count("audit_entry", "action = 'runNodeTask'") }
	tail, process := object{"command": []string{"tail", "-n", "20", "/var/log/app"}}, object{"name": "app"}
	for _, narrow := range []bool{true, false} {
		run(narrow, authz.Ref{}, fmt.Sprint("process", narrow), "INSPECT_PROCESS", process)
		run(narrow, authz.Ref{}, fmt.Sprint("tail", narrow), "RUN", tail)
		require.Zero(t, written())
	}
	run(false, authz.Ref{}, "more", "RUN", object{"command": []string{"true"}})
	require.Equal(t, 1, written())
	run(true, authz.Ref{Kind: "USER", ID: string(h.User), Name: "Mo"}, "requested", "RUN", tail)
	require.Equal(t, 2, written())
}

// The reference app that has moved names what it runs while it looks.
func TestTheReferenceAppNamesItsInspections(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../cmd/hello-cluster-controller/manifest.json")
	require.NoError(t, err)
	var document struct{ Inspections []struct{ Name string } }
	require.NoError(t, json.Unmarshal(raw, &document))
	require.Len(t, document.Inspections, 2)
}
