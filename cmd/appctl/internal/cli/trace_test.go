package cli_test

import (
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/gpuaas/app-platform/sdk/optrace"
)

// TestTheTraceOfAnOperationComesOutTheSame: sent twice it has the same ids, which follow from the operation's.
func TestTheTraceOfAnOperationComesOutTheSame(t *testing.T) {
	t.Parallel()
	r, taken := newRig(t), &taker{}
	receiver := httptest.NewServer(taken)
	t.Cleanup(receiver.Close)
	got := r.run(t.Context(), "", "trace", "emit", "op_5", "--to", receiver.URL, "-q")
	require.Zero(t, got.code, got.stderr)
	whole := optrace.Context("op_5")
	require.Equal(t, whole.TraceID().String()+"\n", got.stdout)
	first := taken.spans()
	require.Len(t, first, 2, "the operation and the step that began")
	require.Contains(t, first, whole.SpanID().String())
	require.Zero(t, r.run(t.Context(), "", "trace", "emit", "op_5", "--to", receiver.URL).code)
	require.Equal(t, first, taken.spans())
}

// TestATraceThatIsNotTakenIsAnError: of an operation that runs, without a receiver, and one that refuses.
func TestATraceThatIsNotTakenIsAnError(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	refusing := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(refusing.Close)
	for say, args := range map[string][]string{
		"the receiver did not accept the trace": {"op_5", "--to", refusing.URL},
		"is not an address":                     {"op_5", "--to", "collector"},
		"has not ended":                         {"op_9", "--to", refusing.URL},
	} {
		got := r.run(t.Context(), "", append([]string{"trace", "emit"}, args...)...)
		require.NotZero(t, got.code)
		require.Contains(t, got.stderr, say)
	}
}

// taker takes traces by OTLP.
type taker struct {
	mu   sync.Mutex
	seen map[string]string // names by the span's id
}

// ServeHTTP implements http.Handler.
func (k *taker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	sent := &collector.ExportTraceServiceRequest{}
	if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, sent) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.seen == nil {
		k.seen = map[string]string{}
	}
	for _, each := range sent.GetResourceSpans() {
		for _, scope := range each.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				k.seen[hex.EncodeToString(span.GetSpanId())] = span.GetName()
			}
		}
	}
}

// spans returns the names of the spans that came, by their ids.
func (k *taker) spans() map[string]string {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := make(map[string]string, len(k.seen))
	for id, name := range k.seen {
		out[id] = name
	}
	return out
}
