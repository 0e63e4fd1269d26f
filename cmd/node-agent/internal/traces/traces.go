// Package traces makes a span of each node task, from taking it to its outcome, and sends it to the receiver that
// OpenTelemetry's standard environment names. Without one nothing is recorded, and the task's trace is carried on.
package traces

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/journal"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/task"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
	"github.com/gpuaas/app-platform/sdk/optrace"
)

// Source makes the spans. A nil Source records nothing.
type Source struct{ provider *sdktrace.TracerProvider }

// Open returns the source for the receiver that the environment names; nil when it names none or traces are off. Node
// names the node in what is sent.
func Open(ctx context.Context, node string, getenv func(string) string) (*Source, error) {
	endpoint, err := optrace.Receiver(getenv)
	if err != nil || endpoint == "" {
		return nil, err
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(endpoint))
	if err != nil {
		return nil, fmt.Errorf("open the exporter of traces: %w", err)
	}
	about, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "node-agent"),
		attribute.String("host.name", node)), resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("read OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	return &Source{sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))}, nil
}

// Close sends what has not been sent yet, until the context ends.
func (s *Source) Close(ctx context.Context) error {
	if s == nil {
		return nil
	}
	return s.provider.Shutdown(ctx)
}

// ContextOf returns the context of a task: its tenant, project, app, instance, operation and trace.
func ContextOf(sent gql.NodeWork) journal.Context {
	of := journal.Context{OrgID: sent.TenantId, ProjectID: sent.ProjectId, AppSlug: sent.AppSlug,
		InstanceID: sent.InstanceId, CorrelationID: sent.CorrelationId, Traceparent: sent.Traceparent}
	if sent.OperationId != nil {
		of.OperationID = *sent.OperationId
	}
	return of
}

// Task opens the span of a task, below the span of the request or attempt that it is for. The task's kind names it; the
// task's time bounds it. Resumed says that an earlier agent took the task: its span was lost with it.
func (s *Source) Task(ctx context.Context, work task.Task, resumed bool) (context.Context, trace.Span) {
	ctx = client.WithTraceparent(ctx, work.Context.Traceparent)
	if s == nil {
		return ctx, trace.SpanFromContext(context.Background())
	}
	of := work.Context
	return s.provider.Tracer("github.com/gpuaas/app-platform/node-agent").Start(ctx, "task "+string(work.Kind),
		trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(
			attribute.String("task_id", work.ID), attribute.String("member_id", work.MemberID),
			attribute.String("correlation_id", of.CorrelationID), attribute.String("org_id", of.OrgID),
			attribute.String("project_id", of.ProjectID), attribute.String("app_slug", of.AppSlug),
			attribute.String("app_instance_id", of.InstanceID), attribute.String("operation_id", of.OperationID),
			attribute.Bool("resumed", resumed)))
}

// Ended notes how a task ended.
func Ended(span trace.Span, state string) {
	span.SetAttributes(attribute.String("state", state))
	if state == task.StateFailed || state == task.StateTimedOut {
		span.SetStatus(codes.Error, state)
	}
}
