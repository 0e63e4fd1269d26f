package authz

import (
	"context"

	"go.opentelemetry.io/otel/trace"
)

// RequestInfo is what ties a request to its traces: it goes into logs, audit, events, adapters and agents.
type RequestInfo struct {
	// CorrelationID is the request's id: 1 to 64 of [A-Za-z0-9._-].
	CorrelationID string
	// Origin is the caller's network address, without a port.
	Origin string
	// TraceID is the id of the trace of the request, or of the worker's attempt; empty while telemetry is off.
	TraceID string
	// Agent is the User-Agent of the caller's program, in a request to the login endpoints; empty elsewhere.
	Agent string
}

type (
	requestKey struct{}
)

// WithRequest is ctx with what is known of the request.
func WithRequest(ctx context.Context, info RequestInfo) context.Context {
	return context.WithValue(ctx, requestKey{}, info)
}

// Request is what is known of the request; zero when nothing is. Its trace is the one that is open in ctx, so that what
// a worker writes within an attempt carries the attempt's trace.
func Request(ctx context.Context) RequestInfo {
	info, _ := ctx.Value(requestKey{}).(RequestInfo)
	if at := trace.SpanContextFromContext(ctx); at.IsValid() {
		info.TraceID = at.TraceID().String()
	}
	return info
}

// VouchedTrace returns the trace that a new token vouches for: the open one, if it is recorded; else empty, as the
// holder of the token could otherwise decide that a trace is recorded.
func VouchedTrace(ctx context.Context) string {
	if at := trace.SpanContextFromContext(ctx); at.IsSampled() {
		return at.TraceID().String()
	}
	return ""
}

// maxCorrelationID bounds a correlation id, in bytes.
const maxCorrelationID = 64

// ValidCorrelationID reports whether a correlation id from outside is fit to be logged and passed on.
func ValidCorrelationID(id string) bool {
	if id == "" || len(id) > maxCorrelationID {
		return false
	}
	for i := range len(id) {
		if !correlationChar(id[i]) {
			return false
		}
	}
	return true
}

// correlationChar reports whether c is one of [A-Za-z0-9._-].
func correlationChar(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-'
}
