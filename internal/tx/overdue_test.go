package tx_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/internal/tx"
)

// openBounded opens the kit's database again with a bound of writing transactions.
func openBounded(t *testing.T, dsn string, longest time.Duration) *tx.DB {
	t.Helper()
	database, err := tx.Open(t.Context(), dsn, tx.Options{Connections: 4, Longest: longest})
	require.NoError(t, err)
	t.Cleanup(database.Close)
	return database
}

func TestAWritingTransactionEndsAtItsBound(t *testing.T) {
	t.Parallel()
	k := newTwo(t)
	database := openBounded(t, k.DSN, 500*time.Millisecond)
	// Each statement is short and none waits: no time-out of PostgreSQL 15 would end it.
	endless := func(ctx context.Context, w *tx.Tx) error {
		_, err := w.Exec(ctx, `UPDATE instance SET health_message = 'late'`)
		for err == nil {
			_, err = w.Exec(ctx, `SELECT pg_sleep(0.02)`)
		}
		return err
	}
	err := database.Write(k.As(k.admin), endless)
	require.True(t, fault.Is(err, fault.Unavailable), "%v", err)
	err = database.As(t.Context(), nil, endless)
	require.True(t, fault.Is(err, fault.Unavailable), "%v", err)
	err = database.AsPipelined(t.Context(), nil, func(*pgx.Batch) {},
		func(ctx context.Context, w *tx.Tx, _ *pgx.Batch) error {
			return endless(ctx, w)
		})
	require.True(t, fault.Is(err, fault.Unavailable), "%v", err)
	require.Zero(t, k.Count("instance", "health_message = 'late'"))
}

func TestOverdueTransactionsOfAnyProcessAreEnded(t *testing.T) {
	t.Parallel()
	k := newTwo(t)
	long := openBounded(t, k.DSN, time.Minute)
	writes, err := long.Worker().Begin(t.Context())
	require.NoError(t, err)
	_, err = writes.Exec(t.Context(), `SELECT pg_current_xact_id()`)
	require.NoError(t, err)
	reads, err := long.API().Begin(t.Context())
	require.NoError(t, err)
	_, err = reads.Exec(t.Context(), `SELECT 1`)
	require.NoError(t, err)
	stranger, err := pgx.Connect(t.Context(), k.DSN)
	require.NoError(t, err)
	t.Cleanup(func() { _ = stranger.Close(context.Background()) })
	_, err = stranger.Exec(t.Context(), `BEGIN; SELECT pg_current_xact_id()`)
	require.NoError(t, err)

	ended, err := long.EndOverdue(t.Context())
	require.NoError(t, err)
	require.Zero(t, ended, "it is within its bound")
	ended, err = openBounded(t, k.DSN, time.Microsecond).EndOverdue(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, ended)
	require.Error(t, writes.Commit(t.Context()), "it was ended")
	require.NoError(t, reads.Commit(t.Context()), "what only reads holds back nothing")
	_, err = stranger.Exec(t.Context(), `COMMIT`)
	require.NoError(t, err, "it is not ours to end")
}
