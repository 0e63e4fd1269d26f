package telemetry_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/gpuaas/app-platform/internal/telemetry"
)

// environment returns a reader of the settings given.
func environment(set map[string]string) func(string) string {
	return func(name string) string { return set[name] }
}

// receiver starts an OTLP receiver, and returns its address and what it takes in.
func receiver(t *testing.T) (string, <-chan *collector.ExportTraceServiceRequest) {
	t.Helper()
	taken := make(chan *collector.ExportTraceServiceRequest, 8)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		sent := &collector.ExportTraceServiceRequest{}
		if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, sent) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		taken <- sent
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(server.Close)
	return server.URL, taken
}

func TestSpansReachTheReceiverThatTheEnvironmentNames(t *testing.T) {
	t.Parallel()
	address, taken := receiver(t)
	source, err := telemetry.Open(t.Context(), "app-platform",
		environment(map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": address}))
	require.NoError(t, err)
	_, span := source.Tracer().Start(t.Context(), "createInstance")
	id := span.SpanContext().TraceID()
	span.End()
	require.NoError(t, source.Close(t.Context()))
	require.Len(t, taken, 1)
	sent := (<-taken).GetResourceSpans()
	require.Len(t, sent, 1)
	got := sent[0].GetScopeSpans()[0].GetSpans()[0]
	require.Equal(t, "createInstance", got.GetName())
	require.Equal(t, id[:], got.GetTraceId())
	require.Equal(t, "app-platform", sent[0].GetResource().GetAttributes()[0].GetValue().GetStringValue())
}

func TestTelemetryIsOffUntilAReceiverIsNamed(t *testing.T) {
	t.Parallel()
	const to = "OTEL_EXPORTER_OTLP_ENDPOINT"
	for _, set := range []map[string]string{
		{}, {to: "http://c:4318", "OTEL_SDK_DISABLED": "true"}, {to: "http://c:4318", "OTEL_TRACES_EXPORTER": "none"},
	} {
		source, err := telemetry.Open(t.Context(), "app-platform", environment(set))
		require.NoError(t, err)
		_, span := source.Tracer().Start(t.Context(), "x")
		require.False(t, span.IsRecording(), set)
		require.False(t, span.SpanContext().IsValid(), set)
		require.NoError(t, source.Close(t.Context()))
	}
}

func TestASettingThatIsNotUnderstoodIsRefused(t *testing.T) {
	t.Parallel()
	for names, set := range map[string]map[string]string{
		"OTEL_TRACES_EXPORTER":        {"OTEL_TRACES_EXPORTER": "zipkin"},
		"OTEL_EXPORTER_OTLP_ENDPOINT": {"OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4318"},
		"OTEL_EXPORTER_OTLP_PROTOCOL": {
			"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
		},
	} {
		_, err := telemetry.Open(t.Context(), "app-platform", environment(set))
		require.ErrorContains(t, err, names)
		require.ErrorContains(t, err, "set it to")
	}
}
