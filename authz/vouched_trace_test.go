package authz_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	"github.com/gpuaas/app-platform/authz"
)

func TestATokenVouchesForATraceThatIsRecordedAlone(t *testing.T) {
	t.Parallel()
	require.Empty(t, authz.VouchedTrace(t.Context()))
	id := trace.TraceID{1}
	for flags, want := range map[trace.TraceFlags]string{0: "", trace.FlagsSampled: id.String()} {
		ctx := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{TraceID: id,
			SpanID: trace.SpanID{1}, TraceFlags: flags}))
		require.Equal(t, want, authz.VouchedTrace(ctx))
		require.Equal(t, id.String(), authz.Request(ctx).TraceID)
	}
}
