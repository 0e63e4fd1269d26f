package tx_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/internal/pgtest"
	"github.com/gpuaas/app-platform/internal/tx"
)

func TestADatabaseThatIsAwayIsToldFromOneThatRefuses(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	dsn := pgtest.New(t).AdminDSN()
	conn, err := pgx.Connect(ctx, dsn)
	require.NoError(t, err)
	_, err = conn.Exec(ctx, `SELECT 1/0`)
	require.Error(t, err)
	require.False(t, tx.Away(fmt.Errorf("read: %w", err)), "a statement's own mistake")

	_, err = conn.Exec(ctx, `SELECT pg_terminate_backend(pg_backend_pid())`)
	require.True(t, tx.Away(fmt.Errorf("read: %w", err)), "%v", err)
	_, err = conn.Exec(ctx, `SELECT 1`)
	require.True(t, tx.Away(errors.Join(err, errors.New("roll back"))), "%v", err)
	_, err = pgx.Connect(ctx, "postgres://nobody@127.0.0.1:1/none")
	require.True(t, tx.Away(err), "%v", err)
	require.True(t, tx.Away(&pgconn.PgError{Code: "57P03"}), "one that is starting")
	require.False(t, tx.Away(context.Canceled), "a caller who went")
	require.False(t, tx.Away(nil))
}
