package telemetry

import (
	"context"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/gpuaas/app-platform/sdk/optrace"
)

// Start opens a span within what is traced in ctx. It records nothing when nothing is traced, so its caller needs no
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

// Carry writes into the header traceparent of a request which trace the call belongs to.
func Carry(ctx context.Context, header http.Header) {
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(header))
}

// Traceparent returns where what follows from ctx belongs, as W3C Trace Context writes it; "" when nothing is traced.
func Traceparent(ctx context.Context) string {
	carried := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carried)
	return carried.Get("traceparent")
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

// sourceKey is the key of a worker's source in its context.
type sourceKey struct{}

// With returns a context whose work by Begin is recorded by the source; a source that is nil or off records nothing.
func With(ctx context.Context, s *Source) context.Context {
	if s.Off() {
		return ctx
	}
	return context.WithValue(ctx, sourceKey{}, s)
}

// Begin opens the trace of a piece of background work, such as an observation, by the source of With. Name has few
// values: ids are attributes. The work must be bounded, and the caller ends the span.
func Begin(ctx context.Context, name string, attributes ...attribute.KeyValue) (context.Context, trace.Span) {
	s, _ := ctx.Value(sourceKey{}).(*Source)
	return s.Attempt(ctx, "", name, attributes...)
}

// slow is how long a turn of periodic work takes before it has a span: most find nothing to do, every few seconds.
const slow = 250 * time.Millisecond

// Turn sends the span of a turn of periodic work that failed or took longer than a quarter of a second, after the fact.
// It has no statements: one that runs every second would be nothing but noise.
func Turn(ctx context.Context, name string, began time.Time, failed bool) {
	s, _ := ctx.Value(sourceKey{}).(*Source)
	if s.Off() || !failed && time.Since(began) < slow {
		return
	}
	_, span := s.Tracer().Start(ctx, "chore "+name, trace.WithNewRoot(), trace.WithTimestamp(began))
	code := ""
	if failed {
		code = "failed"
	}
	End(span, code)
}

// Operation sends the whole trace of an operation that has ended. It can be sent again.
func (s *Source) Operation(ctx context.Context, op *optrace.Operation) {
	optrace.Emit(ctx, s.provider, op)
}

// Off reports whether the source records nothing.
func (s *Source) Off() bool { return s == nil || s.off }
