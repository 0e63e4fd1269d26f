package tx_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/internal/tx"
)

func backend(t *testing.T, w *tx.Tx) (pid int) {
	t.Helper()
	require.NoError(t, w.QueryRow(t.Context(), `SELECT pg_backend_pid()`).Scan(&pid))
	return pid
}

func TestAContextThatEndsBetweenTwoStatementsTakesNoConnectionAway(t *testing.T) {
	t.Parallel()
	k := newTwo(t)
	database, _ := openAgain(t, k.Kit, 1)
	var first, second int
	require.NoError(t, database.As(t.Context(), authz.System("test"), func(ctx context.Context, w *tx.Tx) error {
		first = backend(t, w)
		ended, end := context.WithCancel(ctx)
		end()
		_, err := w.Instance.Query().Count(ended)
		require.ErrorIs(t, err, context.Canceled)
		_, err = w.Instance.Update().SetHealthMessage("never").Save(ended)
		require.ErrorIs(t, err, context.Canceled)
		_, err = w.Exec(ctx, `UPDATE instance SET health_message = 'still here' WHERE id = $1`, k.ours.ID)
		return err
	}))
	require.Equal(t, 1, k.Count("instance", "health_message = 'still here'"))
	require.Zero(t, k.Count("instance", "health_message = 'never'"))
	require.NoError(t, database.As(t.Context(), authz.System("test"), func(_ context.Context, w *tx.Tx) error {
		second = backend(t, w)
		return nil
	}))
	require.Equal(t, first, second)
}

func TestAConnectionThatIsLostInATransactionIsAway(t *testing.T) {
	t.Parallel()
	k := newTwo(t)
	database, _ := openAgain(t, k.Kit, 1)
	err := database.As(t.Context(), authz.System("test"), func(ctx context.Context, w *tx.Tx) error {
		_, err := k.Admin.Exec(ctx, `SELECT pg_terminate_backend($1, 10000)`, backend(t, w))
		require.NoError(t, err)
		_, err = w.Exec(ctx, `SELECT 1`)
		require.Error(t, err)
		_, err = w.Instance.Query().Count(ctx)
		return err
	})
	require.True(t, tx.Away(err), "%v", err)
	require.NoError(t, database.As(t.Context(), authz.System("test"), func(_ context.Context, w *tx.Tx) error {
		backend(t, w)
		return nil
	}), "the next one has another")
}
