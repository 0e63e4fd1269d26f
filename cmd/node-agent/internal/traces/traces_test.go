package traces_test

import (
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/journal"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/task"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/traces"
	"github.com/gpuaas/app-platform/sdk/nodetask"
)

const (
	traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	parent  = "00f067aa0ba902b7"
)

func work() task.Task {
	return task.Task{ID: "tsk_1", Kind: nodetask.KindTeardown, MemberID: "mem_1", Context: journal.Context{
		CorrelationID: "c-1", AppSlug: "hello", Traceparent: "00-" + traceID + "-" + parent + "-01"}}
}

// TestATasksSpanBelongsToWhatMadeIt, with the context of logs, once the receiver that the environment names has it.
func TestATasksSpanBelongsToWhatMadeIt(t *testing.T) {
	t.Parallel()
	taken := make(chan *collector.ExportTraceServiceRequest, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		sent := &collector.ExportTraceServiceRequest{}
		if err != nil || proto.Unmarshal(body, sent) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		taken <- sent
	}))
	defer server.Close()
	source, err := traces.Open(t.Context(), "node-1", func(name string) string {
		return map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": server.URL}[name]
	})
	require.NoError(t, err)
	_, span := source.Task(t.Context(), work(), false)
	traces.Ended(span, task.StateFailed)
	span.End()
	require.NoError(t, source.Close(t.Context()))

	sent := (<-taken).GetResourceSpans()[0].GetScopeSpans()[0].GetSpans()[0]
	require.Equal(t, []string{"task TEARDOWN", traceID, parent}, []string{sent.GetName(),
		hex.EncodeToString(sent.GetTraceId()), hex.EncodeToString(sent.GetParentSpanId())})
	said := map[string]string{}
	for _, each := range sent.GetAttributes() {
		said[each.GetKey()] = each.GetValue().GetStringValue()
	}
	require.Equal(t, []string{"c-1", "hello", "tsk_1", "FAILED"}, []string{said["correlation_id"], said["app_slug"],
		said["task_id"], said["state"]})
	require.Equal(t, "FAILED", sent.GetStatus().GetMessage())
}

// TestWithoutAReceiverTheTraceIsCarriedOn: nothing is recorded, and what is called for the task names its trace.
func TestWithoutAReceiverTheTraceIsCarriedOn(t *testing.T) {
	t.Parallel()
	source, err := traces.Open(t.Context(), "node-1", func(string) string { return "" })
	require.NoError(t, err)
	require.Nil(t, source)
	ctx, span := source.Task(t.Context(), work(), false)
	require.False(t, span.IsRecording())
	traces.Ended(span, task.StateFailed)
	span.End()
	require.NoError(t, source.Close(t.Context()))
	require.Equal(t, traceID, trace.SpanContextFromContext(ctx).TraceID().String())
}
