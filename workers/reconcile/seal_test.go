package reconcile_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/audit"
	"github.com/gpuaas/app-platform/workers/reconcile"
)

// Two processes: one seals, and when it ends the other goes on with the same chain.
func TestTheAuditIsSealedByOneProcessAndTakenOver(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	operator := l.As(l.Operator())
	write := func() {
		require.NoError(t, l.DB.Write(operator, func(ctx context.Context, w *tx.Tx) error {
			return audit.Write(ctx, w, audit.Entry{Action: "test", Key: authz.AuditVerify, ObjectID: "x"})
		}))
	}
	start := func() (stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		watcher := reconcile.New(reconcile.Config{DB: l.DB, Hub: l.Hub, Keys: l.Ring, Log: l.log})
		go func() { defer close(done); _ = watcher.Run(ctx) }()
		return func() { cancel(); <-done }
	}
	sealed := func(n int) func() bool {
		return func() bool { return l.Count("audit_link", "") >= n }
	}
	write()
	first := start()
	require.Eventually(t, sealed(1), patience, 20*time.Millisecond)
	second := start()
	defer second()
	write() // wakes the one that seals
	require.Eventually(t, sealed(2), patience, 20*time.Millisecond)
	first()
	write()
	require.Eventually(t, sealed(3), patience, 20*time.Millisecond)
	require.Equal(t, l.Count("audit_entry", ""), l.Count("audit_link", ""))
	require.Positive(t, l.Count("audit_checkpoint", ""))
}
