// Package optrace builds the whole trace of an operation from its stored record: a span for the operation and one for
// each step. Its ids are derived from the operation's, so that any reader of the operation can build the same trace at
// any time.
package optrace

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Operation is what is stored of an operation that has ended.
type Operation struct {
	ID, Kind, State, CorrelationID, ProjectID string
	InstanceID                                string // "" when it is about none
	ErrorCode, ErrorOwner                     string // "" after a success
	CreatedAt, EndedAt                        time.Time
	Steps                                     []Step
}

// Step is what is stored of one of its steps. One that never began has no span.
type Step struct {
	Name, State        string
	Attempt            int
	StartedAt, EndedAt *time.Time
}

// Context returns where an operation's trace begins: the trace's id is the first 16 bytes of the SHA-256 of the text
// "operation ID", and its root span's the 8 bytes after those.
func Context(operation string) trace.SpanContext {
	sum := sha256.Sum256([]byte("operation " + operation))
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID(sum[:16]), SpanID: trace.SpanID(sum[16:24]), TraceFlags: trace.FlagsSampled,
		Remote: true,
	})
}

// Emit sends an operation's trace. The provider's ids must be of IDs.
func Emit(ctx context.Context, provider trace.TracerProvider, op *Operation) {
	at := Context(op.ID)
	tracer := provider.Tracer("github.com/gpuaas/app-platform/operation")
	attributes := []attribute.KeyValue{attribute.String("operation_id", op.ID), attribute.String("state", op.State),
		attribute.String("correlation_id", op.CorrelationID), attribute.String("project_id", op.ProjectID)}
	if op.InstanceID != "" {
		attributes = append(attributes, attribute.String("app_instance_id", op.InstanceID))
	}
	whole, root := tracer.Start(derived(ctx, at.TraceID(), at.SpanID()), "operation "+op.Kind, trace.WithNewRoot(),
		trace.WithTimestamp(op.CreatedAt), trace.WithAttributes(attributes...))
	for _, step := range op.Steps {
		if step.StartedAt == nil {
			continue
		}
		end := op.EndedAt
		if step.EndedAt != nil {
			end = *step.EndedAt
		}
		sum := sha256.Sum256([]byte("operation " + op.ID + " step " + step.Name))
		_, span := tracer.Start(derived(whole, at.TraceID(), trace.SpanID(sum[:8])), "step "+step.Name,
			trace.WithTimestamp(*step.StartedAt),
			trace.WithAttributes(attribute.String("state", step.State), attribute.Int("attempt", step.Attempt)))
		span.End(trace.WithTimestamp(end))
	}
	if op.ErrorCode != "" {
		root.SetAttributes(attribute.String("error.type", op.ErrorCode), attribute.String("owner", op.ErrorOwner))
		root.SetStatus(codes.Error, op.ErrorCode)
	}
	root.End(trace.WithTimestamp(op.EndedAt))
}

// pair is the ids that the next span of a context gets.
type pair struct {
	trace trace.TraceID
	span  trace.SpanID
}

type pairKey struct{}

func derived(ctx context.Context, traceID trace.TraceID, spanID trace.SpanID) context.Context {
	return context.WithValue(ctx, pairKey{}, pair{traceID, spanID})
}

// IDs returns the generator of ids that a provider for Emit needs. All other spans get random ones.
func IDs() sdktrace.IDGenerator { return generator{} }

type generator struct{}

// NewIDs implements sdktrace.IDGenerator.
func (g generator) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if next, ok := ctx.Value(pairKey{}).(pair); ok {
		return next.trace, next.span
	}
	var id trace.TraceID
	for !id.IsValid() {
		binary.NativeEndian.PutUint64(id[:8], rand.Uint64()) // #nosec G404 -- a name and no secret
		binary.NativeEndian.PutUint64(id[8:], rand.Uint64()) // #nosec G404 -- a name and no secret
	}
	return id, g.random()
}

// NewSpanID implements sdktrace.IDGenerator.
func (g generator) NewSpanID(ctx context.Context, within trace.TraceID) trace.SpanID {
	if next, ok := ctx.Value(pairKey{}).(pair); ok && next.trace == within {
		return next.span
	}
	return g.random()
}

func (generator) random() trace.SpanID {
	var id trace.SpanID
	for !id.IsValid() {
		binary.NativeEndian.PutUint64(id[:], rand.Uint64()) // #nosec G404 -- a name and no secret
	}
	return id
}
