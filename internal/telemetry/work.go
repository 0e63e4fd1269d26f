package telemetry

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/gpuaas/app-platform/sdk/optrace"
)

// Start opens a span within what is traced in ctx. It records nothing when nothing is, so whoever calls it needs no
// source. A name has few values: ids are attributes.
func Start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	within := trace.SpanFromContext(ctx)
	if !within.IsRecording() {
		return ctx, trace.SpanFromContext(context.Background())
	}
	return within.TracerProvider().Tracer(scope).Start(ctx, name, options...)
}

// End ends a span; code is what it failed with, "" for nothing.
func End(span trace.Span, code string) {
	if code != "" {
		span.SetAttributes(attribute.String("error.type", code))
		span.SetStatus(codes.Error, code)
	}
	span.End()
}

// Carry tells whoever is called by a request, in traceparent, which trace the call belongs to.
func Carry(ctx context.Context, header http.Header) {
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(header))
}

// Attempt opens the span of one attempt at something long. It has a trace of its own, and is linked to that of the
// operation it is for; "" for none. A source that is nil or off records nothing.
func (s *Source) Attempt(ctx context.Context, operation, name string,
	attributes ...attribute.KeyValue) (context.Context, trace.Span) {
	if s.Off() {
		return ctx, trace.SpanFromContext(context.Background())
	}
	options := []trace.SpanStartOption{trace.WithNewRoot(), trace.WithAttributes(attributes...)}
	if operation != "" {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: optrace.Context(operation)}))
	}
	return s.Tracer().Start(ctx, name, options...)
}

// Operation sends the whole trace of an operation that has ended. It can be sent again.
func (s *Source) Operation(ctx context.Context, op *optrace.Operation) {
	optrace.Emit(ctx, s.provider, op)
}

// Off reports whether the source records nothing.
func (s *Source) Off() bool { return s == nil || s.off }
