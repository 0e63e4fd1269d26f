package telemetry

import (
	"context"
	"net/http"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/gpuaas/app-platform/transport"
)

// Requests makes a span of every request that next answers, named by pattern. A caller's traceparent is a link of it
// and not its parent: callers decide neither on sampling nor on whose trace is joined. The one exception is a request
// whose credential vouches for that very trace: vouched returns the id of the trace in which the platform issued the
// credential, "" for none, and such a request is part of it. A WebSocket is open for hours and has no span; its
// operations have.
func (s *Source) Requests(pattern string, vouched func(*http.Request) string, next http.Handler) http.Handler {
	if s.off {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			next.ServeHTTP(w, r)
			return
		}
		ctx, options := r.Context(), []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindServer)}
		inbound := propagation.TraceContext{}.Extract(context.Background(), propagation.HeaderCarrier(r.Header))
		caller := trace.SpanContextFromContext(inbound)
		switch {
		case !caller.IsValid():
			options = append(options, trace.WithNewRoot())
		case vouched(r) == caller.TraceID().String():
			ctx = trace.ContextWithRemoteSpanContext(ctx, caller)
		default:
			options = append(options, trace.WithNewRoot(), trace.WithLinks(trace.Link{SpanContext: caller}))
		}
		ctx, span := s.Tracer().Start(ctx, pattern, options...)
		defer span.End()
		next.ServeHTTP(w, r.WithContext(marked(ctx, span)))
	})
}

// Message is the name of the span of an operation that came by a socket.
const Message = "socket message"

// messageKey is the key of such an operation's span in a context.
type messageKey struct{}

// Began opens the span of an operation that came by a socket, so that its refusals have a trace before anything of it
// was understood. It is a Config.Began of the transport; an operation by HTTP has the span of its request already.
func (s *Source) Began(ctx context.Context) context.Context {
	if s.off || trace.SpanContextFromContext(ctx).IsValid() {
		return ctx
	}
	ctx, span := s.Tracer().Start(ctx, Message, trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindServer))
	return context.WithValue(marked(ctx, span), messageKey{}, span)
}

// Ended ends the span that Began opened; that of a subscription has ended before, when it had begun.
func (s *Source) Ended(ctx context.Context, ended *transport.Ended) {
	span, ok := ctx.Value(messageKey{}).(trace.Span)
	if !ok {
		return
	}
	if ended.Code != "" {
		span.SetAttributes(attribute.String("error.type", ended.Code))
	}
	span.End()
}

// marked puts the span's trace where errors report it.
func marked(ctx context.Context, span trace.Span) context.Context {
	return transport.WithTraceID(ctx, span.SpanContext().TraceID().String())
}

// Extension makes a span of every GraphQL operation, and one of every verb where an operation has several. Their names
// are of the schema; the name that a caller gave the operation is nowhere, since it may be any text.
type Extension struct{ Source *Source }

// ExtensionName returns the extension's name for the executor.
func (Extension) ExtensionName() string { return "Traces" }

// Validate returns nil: there is nothing to check.
func (Extension) Validate(graphql.ExecutableSchema) error { return nil }

// InterceptOperation makes the operation's span. That of a subscription ends when it has begun.
func (e Extension) InterceptOperation(ctx context.Context, next graphql.OperationHandler) graphql.ResponseHandler {
	if e.Source.off {
		return next(ctx)
	}
	asked := graphql.GetOperationContext(ctx)
	ctx, span := e.Source.operation(ctx, asked)
	responses := next(marked(ctx, span))
	if asked.Operation.Operation == ast.Subscription {
		span.End()
		return responses
	}
	return func(ctx context.Context) *graphql.Response {
		defer span.End()
		response := responses(ctx)
		judge(span, response)
		return response
	}
}

// operation opens an operation's span, with the correlation id.
func (s *Source) operation(ctx context.Context, asked *graphql.OperationContext) (context.Context, trace.Span) {
	kind := string(asked.Operation.Operation)
	name := kind
	fields := transport.Roots(asked)
	if len(fields) == 1 {
		name += " " + fields[0].Name
	}
	return s.Tracer().Start(ctx, name, trace.WithAttributes(
		attribute.String("graphql.operation.type", kind),
		attribute.String("correlation_id", transport.CorrelationID(ctx))))
}

// Streams makes a span of every subscription that next opens. It ends when the subscription has begun.
func (s *Source) Streams(next transport.Streams) transport.Streams {
	if s.off {
		return next
	}
	return streams{s, next}
}

type streams struct {
	source *Source
	next   transport.Streams
}

// Open implements transport.Streams. A subscription that the executor runs has its span from there: this one is not
// ended, and so not sent.
func (s streams) Open(ctx context.Context, op *graphql.OperationContext,
	sink transport.Sink) (stop func(), ok bool, err error) {
	ctx, span := s.source.operation(ctx, op)
	stop, ok, err = s.next.Open(ctx, op, sink)
	if err != nil {
		span.SetAttributes(attribute.String("error.type", "refused"))
	}
	if ok || err != nil {
		span.End()
	}
	return stop, ok, err
}

// InterceptRootField makes a span of one verb of several.
func (e Extension) InterceptRootField(ctx context.Context, next graphql.RootResolver) graphql.Marshaler {
	if e.Source.off {
		return next(ctx)
	}
	asked := graphql.GetOperationContext(ctx)
	if asked.Operation.Operation == ast.Subscription || len(transport.Roots(asked)) < 2 {
		return next(ctx)
	}
	ctx, span := e.Source.Tracer().Start(ctx, graphql.GetRootFieldContext(ctx).Field.Name)
	defer span.End()
	return next(ctx)
}

// judge notes the code of the first refusal. Only what is the platform's own failure makes the span one of an error.
func judge(span trace.Span, response *graphql.Response) {
	if response == nil || len(response.Errors) == 0 {
		return
	}
	code := transport.Code(response.Errors[0])
	span.SetAttributes(attribute.String("error.type", code))
	if own(code) {
		span.SetStatus(codes.Error, code)
	}
}

// own reports whether a code is that of the platform's own failure.
func own(code string) bool {
	return code == transport.CodeInternal || code == transport.CodeUnavailable || code == transport.CodeDeadlineExceeded
}
