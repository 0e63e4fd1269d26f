package transport

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/http"
)

// CorrelationHeader carries the correlation id, in requests and in answers.
const CorrelationHeader = "X-Correlation-ID"

type (
	correlationKey struct{}
	traceKey       struct{}
)

// WithCorrelationID puts a correlation id in ctx.
func WithCorrelationID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, correlationKey{}, id)
}

// CorrelationID returns the id in ctx, or "".
func CorrelationID(ctx context.Context) string {
	id, _ := ctx.Value(correlationKey{}).(string)
	return id
}

// WithTraceID puts the id of the request's trace in ctx; errors carry it.
func WithTraceID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, traceKey{}, id)
}

// TraceID returns the trace's id in ctx, or "".
func TraceID(ctx context.Context) string {
	id, _ := ctx.Value(traceKey{}).(string)
	return id
}

// ValidCorrelationID reports whether id may be taken over from a caller: 1 to 64 characters
// of A-Z a-z 0-9 . _ -
func ValidCorrelationID(id string) bool {
	if id == "" || len(id) > 64 {
		return false
	}
	for i := range len(id) {
		c := id[i]
		ok := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-'
		if !ok {
			return false
		}
	}
	return true
}

// NewCorrelationID makes a random id of 32 hexadecimal digits.
func NewCorrelationID() string {
	var raw [16]byte
	rand.Read(raw[:])
	return hex.EncodeToString(raw[:])
}

// RequestCorrelationID takes the caller's id when it is well formed, and makes one otherwise.
func RequestCorrelationID(r *http.Request) string {
	if id := r.Header.Get(CorrelationHeader); ValidCorrelationID(id) {
		return id
	}
	return NewCorrelationID()
}
