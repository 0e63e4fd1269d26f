package reconcile_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/internal/pgtest"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/workers/reconcile"
	"github.com/gpuaas/app-platform/workers/reconcile/stats"
)

func TestTheWatermarksHolderIsNamed(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	writes, err := l.DB.Worker().Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = writes.Rollback(t.Context()) }()
	var pid string
	require.NoError(t, writes.QueryRow(t.Context(), `SELECT pg_backend_pid()::text
		FROM pg_current_xact_id()`).Scan(&pid))
	found := &stats.Stats{}
	watcher := reconcile.New(reconcile.Config{DB: l.DB, Hub: l.Hub, Keys: l.Ring, Log: l.log, Stats: found})
	l.background(watcher.Run)
	// Tests of other packages share the server: their transactions may be older, and end.
	require.Eventually(t, func() bool { return found.Holder().Name == pid && found.Holder().Lag > time.Second },
		patience, 50*time.Millisecond)
	holder := found.Holder()
	require.Equal(t, "backend", holder.Kind)
	require.Equal(t, "app_worker", holder.User)
	require.Equal(t, "app-platform app_worker", holder.Application)
	require.NotEmpty(t, holder.Database)
	require.NoError(t, writes.Commit(t.Context()))
	require.Eventually(t, func() bool { return found.Holder().Name != pid }, patience, 50*time.Millisecond)
}

func TestAPreparedTransactionThatHoldsTheFeedsIsNamed(t *testing.T) {
	t.Parallel()
	cluster := pgtest.NewCluster(t)
	cluster.Migrated("app")
	kit := platformtest.Over(t, cluster.DSN("app"))
	cluster.Do("postgres", `BEGIN; CREATE TABLE somebody_elses (); PREPARE TRANSACTION 'forgotten'`)
	cluster.Do("postgres", `CREATE TABLE later ()`) // before anything is later, nothing is held back
	found := &stats.Stats{}
	watcher := reconcile.New(reconcile.Config{DB: kit.DB, Hub: kit.Hub, Keys: kit.Ring,
		Log: slog.New(slog.DiscardHandler), Stats: found})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- watcher.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	require.Eventually(t, func() bool { return found.Holder().Kind == "prepared" }, patience, 50*time.Millisecond)
	holder := found.Holder()
	require.Equal(t, "forgotten postgres postgres", holder.Name+" "+holder.Database+" "+holder.User)
	cluster.Do("postgres", `ROLLBACK PREPARED 'forgotten'`)
	require.Eventually(t, func() bool { return found.Holder().Kind != "prepared" }, patience, 50*time.Millisecond)
}
