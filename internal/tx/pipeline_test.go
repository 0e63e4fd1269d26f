package tx_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/internal/tx"
)

func TestAPipelinedTransactionIsAllOrNothing(t *testing.T) {
	t.Parallel()
	k := newTwo(t)
	run := func(fn func(ctx context.Context, w *tx.Tx, writes *pgx.Batch) error) error {
		var revision int
		return k.DB.AsPipelined(t.Context(), authz.System("test"), func(batch *pgx.Batch) {
			batch.Queue(`SELECT revision FROM instance WHERE id = $1 FOR UPDATE`, k.ours.ID).
				QueryRow(func(row pgx.Row) error { return row.Scan(&revision) })
		}, func(ctx context.Context, w *tx.Tx, writes *pgx.Batch) error {
			writes.Queue(`UPDATE instance SET revision = $2 WHERE id = $1`, k.ours.ID, revision+1)
			return fn(ctx, w, writes)
		})
	}
	at := func(revision int) {
		t.Helper()
		require.Equal(t, 1, k.Count("instance", "id = '"+string(k.ours.ID)+"' AND revision = "+
			string(rune('0'+revision))))
	}
	require.NoError(t, run(func(context.Context, *tx.Tx, *pgx.Batch) error { return nil }))
	at(1)
	mine := errors.New("mine")
	require.ErrorIs(t, run(func(context.Context, *tx.Tx, *pgx.Batch) error { return mine }), mine)
	at(1)
	require.Error(t, run(func(_ context.Context, _ *tx.Tx, writes *pgx.Batch) error {
		writes.Queue(`SELECT 1/0`)
		return nil
	}))
	at(1)
	require.Error(t, run(func(ctx context.Context, w *tx.Tx, writes *pgx.Batch) error {
		_, _ = w.Exec(ctx, `SELECT 1/0`) // swallowed
		return nil
	}), "a swallowed failure is no commit")
	at(1)
	require.Error(t, k.DB.AsPipelined(t.Context(), authz.System("test"), func(batch *pgx.Batch) {
		batch.Queue(`SELECT 1/0`)
	},
		func(context.Context, *tx.Tx, *pgx.Batch) error { return nil }))
	require.NoError(t, run(func(context.Context, *tx.Tx, *pgx.Batch) error { return nil }),
		"its connection is fit for the next one")
	at(2)
}
