// Package otlptest is a receiver of traces by OTLP over HTTP for tests, and the source that sends to it.
package otlptest

import (
	"bytes"
	"context"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/gpuaas/app-platform/internal/telemetry"
)

// patience bounds the wait for a span.
const patience = 30 * time.Second

// Receiver takes spans by OTLP.
type Receiver struct {
	// Source sends its spans to the receiver.
	Source *telemetry.Source
	t      testing.TB

	mu    sync.Mutex
	raw   []byte
	spans []*tracepb.Span
	from  map[*tracepb.Span]string // the program that sent a span
}

// Unserved returns a receiver that listens nowhere yet and has no Source: the caller serves it, for programs of an
// installation to send to.
func Unserved(t testing.TB) *Receiver {
	return &Receiver{t: t, from: make(map[*tracepb.Span]string)}
}

// New starts a receiver for the test.
func New(t testing.TB) *Receiver {
	t.Helper()
	into := Unserved(t)
	server := httptest.NewServer(into)
	t.Cleanup(server.Close)
	source, err := telemetry.Open(t.Context(), "app-platform", func(name string) string {
		return map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": server.URL}[name]
	})
	require.NoError(t, err)
	into.Source = source
	t.Cleanup(func() { _ = source.Close(context.WithoutCancel(t.Context())) })
	return into
}

// ServeHTTP takes the spans of one request.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	sent := &collector.ExportTraceServiceRequest{}
	body, err := io.ReadAll(request.Body)
	if err != nil || proto.Unmarshal(body, sent) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.raw = append(r.raw, body...)
	for _, each := range sent.GetResourceSpans() {
		for _, scope := range each.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				r.spans = append(r.spans, span)
				r.from[span] = named(each.GetResource().GetAttributes(), "service.name")
			}
		}
	}
}

// Raw returns all bytes that came.
func (r *Receiver) Raw() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return string(r.raw)
}

// Spans sends what has ended at the Source, and returns all spans until now.
func (r *Receiver) Spans() []*tracepb.Span {
	r.t.Helper()
	if r.Source != nil {
		provider, ok := r.Source.Provider().(interface{ ForceFlush(context.Context) error })
		require.True(r.t, ok)
		require.NoError(r.t, provider.ForceFlush(r.t.Context()))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]*tracepb.Span(nil), r.spans...)
}

// Await returns the last span of a name once it is sent, and the spans of its trace by name.
func (r *Receiver) Await(name string) (found *tracepb.Span, trace map[string]*tracepb.Span) {
	r.t.Helper()
	trace = map[string]*tracepb.Span{}
	require.Eventually(r.t, func() bool {
		sent := r.Spans()
		for _, span := range sent {
			if span.GetName() == name {
				found = span
			}
		}
		for _, span := range sent {
			if found != nil && bytes.Equal(span.GetTraceId(), found.GetTraceId()) {
				trace[span.GetName()] = span
			}
		}
		return found != nil
	}, patience, 20*time.Millisecond, name)
	return found, trace
}

// From returns the name of the program that sent a span.
func (r *Receiver) From(span *tracepb.Span) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.from[span]
}

// TraceIDs returns the ids, in hexadecimal, of the traces that hold a span of a name.
func (r *Receiver) TraceIDs(name string) []string {
	r.t.Helper()
	var found []string
	for _, span := range r.Spans() {
		if span.GetName() == name {
			found = append(found, hex.EncodeToString(span.GetTraceId()))
		}
	}
	return found
}

// With returns a span with the attribute, once it is sent.
func (r *Receiver) With(attribute, value string) *tracepb.Span {
	r.t.Helper()
	return r.first(func(span *tracepb.Span) bool { return Attribute(span, attribute) == value })
}

// Span returns the span with an id, once it is sent.
func (r *Receiver) Span(id []byte) *tracepb.Span {
	r.t.Helper()
	return r.first(func(span *tracepb.Span) bool { return bytes.Equal(span.GetSpanId(), id) })
}

func (r *Receiver) first(wanted func(*tracepb.Span) bool) (found *tracepb.Span) {
	r.t.Helper()
	require.Eventually(r.t, func() bool {
		sent := r.Spans()
		at := slices.IndexFunc(sent, wanted)
		if at >= 0 {
			found = sent[at]
		}
		return at >= 0
	}, patience, 20*time.Millisecond)
	return found
}

// Attribute returns a span's attribute; "" when it has none of the name.
func Attribute(span *tracepb.Span, name string) string { return named(span.GetAttributes(), name) }

// named returns the text of the attribute of a name.
func named(attributes []*common.KeyValue, name string) string {
	for _, each := range attributes {
		if each.GetKey() == name {
			return each.GetValue().GetStringValue()
		}
	}
	return ""
}
