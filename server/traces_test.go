package server

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/gpuaas/app-platform/internal/telemetry"
)

// traces is an OTLP receiver, and the source that sends to it.
type traces struct {
	t      *testing.T
	source *telemetry.Source

	mu    sync.Mutex
	raw   []byte
	spans []*tracepb.Span
}

// traced returns a bench whose spans go to a receiver.
func traced(t *testing.T) (*bench, *traces) {
	t.Helper()
	into := &traces{t: t}
	receiver := httptest.NewServer(http.HandlerFunc(into.take))
	t.Cleanup(receiver.Close)
	source, err := telemetry.Open(t.Context(), "app-platform", func(name string) string {
		return map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.URL}[name]
	})
	require.NoError(t, err)
	into.source = source
	t.Cleanup(func() { _ = source.Close(context.WithoutCancel(t.Context())) })
	return newBench(t, func(c *Config) { c.Traces = source }), into
}

func (i *traces) take(w http.ResponseWriter, r *http.Request) {
	sent := &collector.ExportTraceServiceRequest{}
	body, err := io.ReadAll(r.Body)
	if err != nil || proto.Unmarshal(body, sent) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.raw = append(i.raw, body...)
	for _, each := range sent.GetResourceSpans() {
		for _, scope := range each.GetScopeSpans() {
			i.spans = append(i.spans, scope.GetSpans()...)
		}
	}
}

// sent sends what has ended, and returns all spans until now.
func (i *traces) sent() []*tracepb.Span {
	provider, ok := i.source.Provider().(interface{ ForceFlush(context.Context) error })
	require.True(i.t, ok)
	require.NoError(i.t, provider.ForceFlush(i.t.Context()))
	i.mu.Lock()
	defer i.mu.Unlock()
	return append([]*tracepb.Span(nil), i.spans...)
}

// await returns the span of a name once it is sent, and those of its trace.
func (i *traces) await(name string) (found *tracepb.Span, trace map[string]*tracepb.Span) {
	i.t.Helper()
	trace = map[string]*tracepb.Span{}
	require.Eventually(i.t, func() bool {
		sent := i.sent()
		for _, span := range sent {
			if span.GetName() == name {
				found = span
			}
		}
		for _, span := range sent {
			if found != nil && bytes.Equal(span.GetTraceId(), found.GetTraceId()) {
				trace[span.GetName()] = span
			}
		}
		return found != nil
	}, patience, 20*time.Millisecond, name)
	return found, trace
}

// attribute returns a span's attribute; "" when it has none of the name.
func attribute(span *tracepb.Span, name string) string {
	for _, each := range span.GetAttributes() {
		if each.GetKey() == name {
			return each.GetValue().GetStringValue()
		}
	}
	return ""
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
	root, spans := received.await("/graphql")
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
	_, spans := received.await("/graphql")
	verb := spans["mutation createTenant"]
	require.NotNil(t, verb)
	require.NotEmpty(t, attribute(verb, "correlation_id"))
	for _, name := range []string{telemetry.PoolWait, "batch", "COMMIT", "INSERT tenant"} {
		require.Contains(t, spans, name)
	}
	require.Equal(t, verb.GetSpanId(), spans[telemetry.PoolWait].GetParentSpanId())
	require.Equal(t, "tenant", attribute(spans["INSERT tenant"], "db.collection.name"))
	received.mu.Lock()
	defer received.mu.Unlock()
	for _, text := range []string{"canary", "Canary", "$1", "VALUES", strings.TrimPrefix(operator, "Bearer "), "Secret"} {
		require.NotContains(t, string(received.raw), text)
	}
}

// TestASubscriptionsSpanEndsWhenItHasBegun: it is sent while the subscription is open, and a refusal names its code.
func TestASubscriptionsSpanEndsWhenItHasBegun(t *testing.T) {
	t.Parallel()
	b, received := traced(t)
	project := b.Project(b.Tenant())
	open := b.listen("operator", b.Session(b.Operator()), activityDocument, project.ID)
	span, spans := received.await("subscription projectActivity")
	require.NotContains(t, spans, "/graphql", "a socket is open for hours")
	require.Contains(t, spans, telemetry.PoolWait)
	require.Empty(t, span.GetParentSpanId())
	_, code, closed := open.state()
	require.Empty(t, code)
	require.Zero(t, closed)
}
