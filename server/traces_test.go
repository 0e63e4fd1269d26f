package server

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/internal/otlptest"
	"github.com/gpuaas/app-platform/internal/telemetry"
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
	for _, text := range []string{"canary", "Canary", "$1", "VALUES", strings.TrimPrefix(operator, "Bearer "), "Secret"} {
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
	require.Empty(t, span.GetParentSpanId())
	_, code, closed := open.state()
	require.Empty(t, code)
	require.Zero(t, closed)
}
