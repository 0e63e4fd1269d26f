package workers_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	dbevent "github.com/gpuaas/app-platform/ent/generated/db/event"
	dbtask "github.com/gpuaas/app-platform/ent/generated/db/nodetask"
	dbstep "github.com/gpuaas/app-platform/ent/generated/db/operationstep"
	"github.com/gpuaas/app-platform/internal/otlptest"
	"github.com/gpuaas/app-platform/sdk/optrace"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// TestAnAttemptIsATraceLinkedToItsOperation: it holds a span for each step and call, the call's trace reaches the
// adapter, and steps and calls have lines with the operation's ids.
func TestAnAttemptIsATraceLinkedToItsOperation(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	received, lines := otlptest.New(t), &lineLog{}
	l.traces, l.log = received.Source, slog.New(slog.NewJSONHandler(lines, nil))
	kit := l.kit("kit", joins)
	l.work()
	it := l.launch(l.world("kit", kit), time.Minute)
	op := l.ended(it.create)
	require.Equal(t, lifecycle.OperationSucceeded, op.State, "%s %s", op.ErrorCode, op.ErrorMessage)

	call, spans := received.Await("adapter dispatch")
	require.Equal(t, "kit", otlptest.Attribute(call, "adapter"))
	attempt := spans["attempt "+string(op.Kind)]
	require.NotNil(t, attempt)
	require.Equal(t, string(op.ID), otlptest.Attribute(attempt, "operation_id"))
	require.Equal(t, string(it.instance), otlptest.Attribute(attempt, "app_instance_id"))
	require.Equal(t, op.CorrelationID, otlptest.Attribute(attempt, "correlation_id"))
	require.Empty(t, attempt.GetParentSpanId())
	require.Len(t, attempt.GetLinks(), 1)
	whole := optrace.Context(string(op.ID))
	require.Equal(t, whole.TraceID().String(), hex.EncodeToString(attempt.GetLinks()[0].GetTraceId()))
	var step string
	for name, span := range spans {
		if bytes.Equal(span.GetSpanId(), call.GetParentSpanId()) {
			step = name
		}
	}
	require.Equal(t, attempt.GetSpanId(), spans[step].GetParentSpanId(), step)
	require.True(t, strings.HasPrefix(step, "step "), step)

	root, all := received.Await("operation " + string(op.Kind))
	require.Equal(t, whole.TraceID().String(), hex.EncodeToString(root.GetTraceId()))
	require.Equal(t, whole.SpanID().String(), hex.EncodeToString(root.GetSpanId()))
	require.EqualValues(t, op.CreatedAt.UnixNano(), root.GetStartTimeUnixNano())
	require.EqualValues(t, op.EndedAt.UnixNano(), root.GetEndTimeUnixNano())
	for _, row := range l.own.OperationStep.Query().Where(dbstep.OperationID(op.ID)).AllX(t.Context()) {
		require.Contains(t, all, "step "+row.Name)
		require.Equal(t, root.GetSpanId(), all["step "+row.Name].GetParentSpanId())
	}

	tasks := l.own.NodeTask.Query().Where(dbtask.OperationID(op.ID)).AllX(t.Context())
	require.NotEmpty(t, tasks)
	for _, task := range tasks {
		require.Equal(t, op.CorrelationID, task.CorrelationID, task.Kind)
		require.NotEmpty(t, task.AppSlug)
		if strings.HasPrefix(task.IdempotencyKey, "platform ") { // the attempt's own, such as a probe
			require.Contains(t, received.TraceIDs("attempt "+string(op.Kind)), strings.Split(task.Traceparent, "-")[1])
		}
	}

	require.Equal(t, whole.TraceID().String(), (&operation.View{Operation: op}).TraceID())
	ended := l.own.Event.Query().Where(dbevent.OperationID(op.ID),
		dbevent.Type(string(lifecycle.EventOperationSucceeded))).OnlyX(t.Context())
	require.Contains(t, received.TraceIDs("attempt "+string(op.Kind)), ended.TraceID, "of the attempt that wrote it")
	for _, name := range []string{"observe", "feed"} {
		span, spans := received.Await(name)
		require.Empty(t, span.GetParentSpanId())
		require.Condition(t, func() bool {
			return spans["adapter observe"] != nil || spans["adapter changes"] != nil
		}, name)
	}

	require.Equal(t, tasks[0].AppSlug, otlptest.Attribute(attempt, "app_slug"))
	stepped := lines.one(t, "step", "step", strings.TrimPrefix(step, "step "))
	require.Equal(t, "done", stepped["outcome"])
	dispatched := lines.one(t, "adapter call", "call", "dispatch")
	for _, line := range []map[string]any{stepped, dispatched} {
		require.Equal(t, []any{op.CorrelationID, string(op.TenantID), string(op.ProjectID), tasks[0].AppSlug,
			string(it.instance),
			string(op.ID)}, []any{line["correlation_id"], line["org_id"], line["project_id"], line["app_slug"],
			line["app_instance_id"], line["operation_id"]},
			"whose a line is and what it is about, spelled as everywhere")
	}
	require.Equal(t, hex.EncodeToString(call.GetTraceId()), dispatched["trace_id"])
	require.Equal(t, op.CorrelationID, dispatched["correlation_id"])
}

// lineLog keeps lines of JSON.
type lineLog struct {
	mu    sync.Mutex
	lines bytes.Buffer
}

// Write implements io.Writer.
func (l *lineLog) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines.Write(line)
}

// one returns the first line of a message whose field has the value.
func (l *lineLog) one(t *testing.T, message, field, value string) map[string]any {
	t.Helper()
	l.mu.Lock()
	text := l.lines.String()
	l.mu.Unlock()
	for line := range strings.Lines(text) {
		fields := map[string]any{}
		require.NoError(t, json.Unmarshal([]byte(line), &fields), line)
		if fields["msg"] == message && fields[field] == value {
			return fields
		}
	}
	require.Fail(t, "no such line", "%s %s=%s in %s", message, field, value, text)
	return nil
}
