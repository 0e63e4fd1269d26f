package server

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz/token"
)

// requestLog keeps the lines that a server logs.
type requestLog struct {
	mu    sync.Mutex
	lines bytes.Buffer
}

// Write implements io.Writer.
func (l *requestLog) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines.Write(line)
}

// all returns the lines about requests, and their text.
func (l *requestLog) all(t *testing.T) (lines []map[string]any, text string) {
	t.Helper()
	l.mu.Lock()
	text = l.lines.String()
	l.mu.Unlock()
	for line := range strings.Lines(text) {
		fields := map[string]any{}
		require.NoError(t, json.Unmarshal([]byte(line), &fields), line)
		if fields["msg"] == "request" {
			lines = append(lines, fields)
		}
	}
	return lines, text
}

// one returns the only line with that verb.
func (l *requestLog) one(t *testing.T, verb string) map[string]any {
	t.Helper()
	var found []map[string]any
	require.Eventually(t, func() bool {
		lines, _ := l.all(t)
		found = nil
		for _, line := range lines {
			if line["verb"] == verb {
				found = append(found, line)
			}
		}
		return len(found) > 0
	}, patience, 10*time.Millisecond, verb)
	require.Len(t, found, 1)
	return found[0]
}

// TestEachRequestHasOneLine: with its ids, caller, verb, code, duration and cost, and neither arguments nor names that
// the caller chose.
func TestEachRequestHasOneLine(t *testing.T) {
	t.Parallel()
	log := &requestLog{}
	b := newBenchWith(t, slog.New(slog.NewJSONHandler(log, nil)))
	person := b.Operator()
	operator := b.Session(person)
	const document = `mutation Secret($in: CreateTenantInput!) { canaryAlias: createTenant(input: $in) { id } }`
	input := map[string]any{"in": map[string]any{
		"slug": "canary-slug", "displayName": "Canary Name", "idempotencyKey": "canary-key",
	}}
	require.Empty(t, b.post(operator, document, input).Errors)

	line := log.one(t, "createTenant")
	require.Equal(t, "INFO", line["level"])
	require.Equal(t, "mutation", line["kind"])
	require.Empty(t, line["code"])
	require.Equal(t, string(person.ID), line["actor_id"])
	require.Equal(t, "USER", line["actor_kind"])
	require.Len(t, line["correlation_id"], 32)
	require.Positive(t, line["duration_ms"])
	require.InDelta(t, 2, line["cost"], 0)
	require.NotContains(t, line, "org_id", "it is about no object of a tenant")

	room := b.Project(b.Tenant())
	require.Empty(t, b.post(operator, `query($id: ID!) { operations(projectId: $id) { edges { cursor } } }`,
		map[string]any{"id": room.ID}).Errors)
	line = log.one(t, "operations")
	require.Equal(t, []any{string(room.TenantID), string(room.ID)}, []any{line["org_id"], line["project_id"]},
		"the object's, and not the operator's, who is of no tenant")

	require.NotEmpty(t, b.post(operator, `{ a: operation(id: "canary") { id } b: operation(id: "canary") { id } }`,
		nil).Errors)
	line = log.one(t, "operation")
	require.Equal(t, "query", line["kind"])
	require.Equal(t, "INVALID_ARGUMENT", line["code"])

	require.NotEmpty(t, b.post("gpu_ses_canary", `{ viewer { __typename } }`, nil).Errors)
	line = log.one(t, "")
	require.Equal(t, "UNAUTHENTICATED", line["code"])
	require.NotContains(t, line, "actor_id")

	shown, err := token.ParseSecret(operator)
	require.NoError(t, err)
	forged, _ := token.MintFor(token.Session, shown.ID)
	require.NotEmpty(t, b.post(forged, `{ viewer { __typename } }`, nil).Errors)
	line = log.one(t, "viewer")
	require.Equal(t, "UNAUTHENTICATED", line["code"])
	require.NotContains(t, line, "actor_id", "whoever knows a session's id is not its owner")

	project := b.Project(b.Tenant())
	b.listen("operator", operator, activityDocument, project.ID)
	line = log.one(t, "projectActivity")
	require.Equal(t, "subscription", line["kind"])
	require.Equal(t, string(person.ID), line["actor_id"])

	_, text := log.all(t)
	for _, secret := range []string{"canary", "Canary", "Secret", strings.TrimPrefix(operator, "Bearer ")} {
		require.NotContains(t, text, secret)
	}
}
