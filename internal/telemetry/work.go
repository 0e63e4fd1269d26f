package telemetry

import (
	"context"
	"crypto/sha256"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
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
	if s == nil || s.off {
		return ctx, trace.SpanFromContext(context.Background())
	}
	options := []trace.SpanStartOption{trace.WithNewRoot(), trace.WithAttributes(attributes...)}
	if operation != "" {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: OperationTrace(operation)}))
	}
	return s.Tracer().Start(ctx, name, options...)
}

// OperationTrace returns where an operation's own trace begins. Anyone can derive it from the operation's id: the trace's
// id is the first 16 bytes of the SHA-256 of "operation ID", and its root span's the 8 bytes after those.
func OperationTrace(operation string) trace.SpanContext {
	sum := sha256.Sum256([]byte("operation " + operation))
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID(sum[:16]), SpanID: trace.SpanID(sum[16:24]), TraceFlags: trace.FlagsSampled, Remote: true,
	})
}
