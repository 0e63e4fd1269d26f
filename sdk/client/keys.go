package client

import (
	"context"
	"crypto/rand"
	"strings"

	"go.opentelemetry.io/otel/propagation"
)

const maxCorrelationID = 64

type contextKey int

const (
	correlationKey contextKey = iota
	repeatableKey
)

// NewKey returns a new idempotency key: 26 random letters and digits. Keep it and send it again to repeat a mutation
// without repeating its effect.
func NewKey() string { return strings.ToLower(rand.Text()) }

// WithCorrelationID makes the calls and feeds of the context carry the id, which ties together all they cause. An
// id that is not 1 to 64 of [A-Za-z0-9._-] is ignored, as the platform would refuse it.
func WithCorrelationID(ctx context.Context, id string) context.Context {
	if !validCorrelationID(id) {
		return ctx
	}
	return context.WithValue(ctx, correlationKey, id)
}

// WithTraceparent makes the calls of the context carry a received W3C trace context, such as that of a call to an
// adapter. A span that is open in the context is carried without it. A malformed trace context is ignored.
func WithTraceparent(ctx context.Context, traceparent string) context.Context {
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": traceparent})
}

// Repeatable marks the calls of the context as harmless to repeat although their input carries no idempotencyKey,
// such as a heartbeat or a report that a fence guards.
func Repeatable(ctx context.Context) context.Context {
	return context.WithValue(ctx, repeatableKey, true)
}

func isRepeatable(ctx context.Context) bool {
	marked, _ := ctx.Value(repeatableKey).(bool)
	return marked
}

// correlationID is the context's, the client's, or a fresh one.
func (c *Client) correlationID(ctx context.Context) string {
	if id, ok := ctx.Value(correlationKey).(string); ok {
		return id
	}
	if c.options.CorrelationID != "" {
		return c.options.CorrelationID
	}
	return NewKey()
}

func validCorrelationID(id string) bool {
	if id == "" || len(id) > maxCorrelationID {
		return false
	}
	for _, r := range id {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (r < '0' || r > '9') && r != '.' && r != '_' && r != '-' {
			return false
		}
	}
	return true
}
