package server

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/ids"
	dbaudit "github.com/gpuaas/app-platform/ent/generated/db/auditentry"
	"github.com/gpuaas/app-platform/internal/otlptest"
	"github.com/gpuaas/app-platform/internal/telemetry"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// traced returns a bench whose spans go to a receiver.
func traced(t *testing.T) (*bench, *otlptest.Receiver) {
	t.Helper()
	received := otlptest.New(t)
	return newBench(t, func(c *Config) { c.Traces = received.Source }), received
}

// TestARequestsTraceReachesTheReceiver: a request has a trace of its own, which the caller's is linked to, spans are
// named by the schema and not by the caller's words, and the error has the trace's id.
func TestARequestsTraceReachesTheReceiver(t *testing.T) {
	t.Parallel()
	b, received := traced(t)
	const callers = "4bf92f3577b34da6a3ce929d0e0e4736"
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url+"/graphql",
		bytes.NewReader([]byte(`{"query":"query Secret { a: operation(id: \"x\") { id } viewer { __typename } }"}`)))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+b.Session(b.Operator()))
	request.Header.Set("Traceparent", "00-"+callers+"-00f067aa0ba902b7-01")
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	raw, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	var got struct {
		Errors []struct {
			Extensions struct {
				TraceID string `json:"trace_id"`
			}
		}
	}
	require.NoError(t, json.Unmarshal(raw, &got))
	require.NotEmpty(t, got.Errors, string(raw))
	root, spans := received.Await("/graphql")
	require.Equal(t, got.Errors[0].Extensions.TraceID, hex.EncodeToString(root.GetTraceId()))
	require.Contains(t, spans, "query")
	require.NotContains(t, spans, "query Secret")
	require.Empty(t, root.GetParentSpanId())
	require.NotEqual(t, callers, hex.EncodeToString(root.GetTraceId()))
	require.Len(t, root.GetLinks(), 1)
	require.Equal(t, callers, hex.EncodeToString(root.GetLinks()[0].GetTraceId()))
	require.Equal(t, root.GetSpanId(), spans["query"].GetParentSpanId())
	require.Contains(t, spans, "operation")
	require.Equal(t, spans["query"].GetSpanId(), spans["operation"].GetParentSpanId())
}

// TestAMutationsStatementsAreSpansWithoutTheirText: one verb names the operation's span; its statements and the wait
// for a connection are within it, and neither arguments nor SQL are sent.
func TestAMutationsStatementsAreSpansWithoutTheirText(t *testing.T) {
	t.Parallel()
	b, received := traced(t)
	const document = `mutation Secret($in: CreateTenantInput!) { createTenant(input: $in) { id } }`
	input := map[string]any{"in": map[string]any{
		"slug": "canary-slug", "displayName": "Canary Name", "idempotencyKey": "canary-key",
	}}
	operator := b.Session(b.Operator())
	got := b.post(operator, document, input)
	require.Empty(t, got.Errors, got.Raw)
	_, spans := received.Await("/graphql")
	verb := spans["mutation createTenant"]
	require.NotNil(t, verb)
	require.NotEmpty(t, otlptest.Attribute(verb, "correlation_id"))
	for _, name := range []string{telemetry.PoolWait, "batch", "COMMIT", "INSERT tenant"} {
		require.Contains(t, spans, name)
	}
	require.Equal(t, verb.GetSpanId(), spans[telemetry.PoolWait].GetParentSpanId())
	require.Equal(t, "tenant", otlptest.Attribute(spans["INSERT tenant"], "db.collection.name"))
	entry := b.Ent.AuditEntry.Query().Where(dbaudit.Action("createTenant")).OnlyX(t.Context())
	require.Equal(t, hex.EncodeToString(verb.GetTraceId()), entry.TraceID, "the audit bears the request's trace")
	for _, text := range []string{"canary", "Canary", "$1", "VALUES", strings.TrimPrefix(operator, "Bearer "),
		"Secret"} {
		require.NotContains(t, received.Raw(), text)
	}
}

// TestASubscriptionsSpanEndsWhenItHasBegun: it is sent while the subscription is open, and a refusal names its code.
func TestASubscriptionsSpanEndsWhenItHasBegun(t *testing.T) {
	t.Parallel()
	b, received := traced(t)
	project := b.Project(b.Tenant())
	open := b.listen("operator", b.Session(b.Operator()), activityDocument, project.ID)
	span, spans := received.Await("subscription projectActivity")
	require.NotContains(t, spans, "/graphql", "a socket is open for hours")
	require.Contains(t, spans, telemetry.PoolWait)
	message, _ := received.Await(telemetry.Message)
	require.Empty(t, message.GetParentSpanId())
	require.Equal(t, message.GetSpanId(), span.GetParentSpanId())
	_, code, closed := open.state()
	require.Empty(t, code)
	require.Zero(t, closed)
}

// TestEveryRefusalNamesItsTrace: of a request before its operation is understood, of an unknown caller, and of a
// subscription by a socket.
func TestEveryRefusalNamesItsTrace(t *testing.T) {
	t.Parallel()
	b, received := traced(t)
	named := regexp.MustCompile(`"trace_id":\s*"([0-9a-f]{32})"`)
	for name, got := range map[string]struct{ span, raw string }{
		"a document that is none": {"/graphql", b.post(b.Session(b.Operator()), `query {`, nil).Raw},
		"an unknown caller":       {"/graphql", b.post("gpu_ses_canary", `{ viewer { __typename } }`, nil).Raw},
		"a subscription": {telemetry.Message, b.watch(b.Session(b.User(b.Tenant())), activityDocument,
			arguments{"id": ids.New(ids.Project)}).Raw},
		"a document on a socket": {telemetry.Message, b.watch(b.Session(b.Operator()), `subscription {`, nil).Raw},
	} {
		found := named.FindStringSubmatch(got.raw)
		require.NotEmpty(t, found, "%s: %s", name, got.raw)
		require.Eventually(t, func() bool { return slices.Contains(received.TraceIDs(got.span), found[1]) }, patience,
			10*time.Millisecond, name)
	}
}

// TestAnAdaptersRequestsBelongToTheTraceThatItWasCalledIn: its token vouches for that trace. Another trace's id, or the
// same with another's credential, is a link.
func TestAnAdaptersRequestsBelongToTheTraceThatItWasCalledIn(t *testing.T) {
	t.Parallel()
	b, received := traced(t)
	ctx, span := received.Source.Tracer().Start(t.Context(), "attempt")
	span.End()
	at := span.SpanContext()
	token, err := operation.IssueCallToken(ctx, b.Ring, operation.Call{Instance: ids.New(ids.Instance),
		Life: time.Minute, Keys: operation.LookKeys(true)}, b.DB.Now())
	require.NoError(t, err)
	const other = "4bf92f3577b34da6a3ce929d0e0e4736"
	for id, sent := range map[string]struct {
		token, trace string
		belongs      bool
	}{
		"its-own": {token.Text, at.TraceID().String(), true}, "another": {token.Text, other, false},
		"stranger": {b.Session(b.Operator()), at.TraceID().String(), false},
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url+"/graphql",
			strings.NewReader(`{"query":"{ viewer { __typename } }"}`))
		require.NoError(t, err)
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Authorization", "Bearer "+sent.token)
		request.Header.Set("X-Correlation-ID", id)
		request.Header.Set("Traceparent", "00-"+sent.trace+"-"+at.SpanID().String()+"-01")
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		verb := received.With("correlation_id", id)
		root := received.Span(verb.GetParentSpanId())
		belongs := hex.EncodeToString(root.GetTraceId()) == at.TraceID().String()
		require.Equal(t, sent.belongs, belongs, id)
		require.Equal(t, sent.belongs, len(root.GetLinks()) == 0, id)
		require.Equal(t, sent.belongs, len(root.GetParentSpanId()) > 0, id)
	}
}
