package tx_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/internal/pgtest"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/rig/platformtest"
)

// impatient is the bound of the tests, and enough is when a call with it must have ended.
const (
	impatient = 500 * time.Millisecond
	enough    = 10 * time.Second
)

// behind opens the kit's database through a proxy, with the bound of the tests.
func behind(t *testing.T, kit *platformtest.Kit) (*tx.DB, *pgtest.Proxy) {
	t.Helper()
	proxy := pgtest.NewProxy(t, kit.DSN)
	database, err := tx.Open(t.Context(), proxy.DSN(), tx.Options{Connections: 2, Answer: impatient})
	require.NoError(t, err)
	t.Cleanup(database.Close)
	return database, proxy
}

func TestNoCallWaitsForADatabaseThatIsSilent(t *testing.T) {
	t.Parallel()
	k := newTwo(t)
	ctx := k.As(k.admin)
	noop := func(ctx context.Context, w *tx.Tx) error {
		_, err := w.Exec(ctx, `SELECT 1`)
		return err
	}
	calls := map[string]func(*tx.DB) error{
		"a read": func(d *tx.DB) error { _, err := d.Read(ctx); return err },
		"a verb": func(d *tx.DB) error { return d.Write(ctx, noop) },
		"the platform's own": func(d *tx.DB) error {
			return d.As(context.Background(), authz.System("test"), noop)
		},
		"a pipelined one": func(d *tx.DB) error {
			return d.AsPipelined(context.Background(), authz.System("test"), func(*pgx.Batch) {},
				func(context.Context, *tx.Tx, *pgx.Batch) error { return nil })
		},
		"a statement of the pool": func(d *tx.DB) error {
			_, err := d.Worker().Exec(context.Background(), `SELECT 1`)
			return err
		},
		"the heartbeat's pool": func(d *tx.DB) error {
			_, err := d.Lease().Exec(context.Background(), `SELECT 1`)
			return err
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database, proxy := behind(t, k.Kit)
			require.NoError(t, call(database), "while it answers")
			proxy.Swallow()
			ended := make(chan error, 1)
			go func() { ended <- call(database) }()
			select {
			case err := <-ended:
				require.True(t, tx.Away(err), "%v", err)
			case <-time.After(enough):
				require.Fail(t, "it waits on")
			}
			require.NoError(t, call(database), "the next one has a connection of its own")
		})
	}
}

func TestACommitWhoseAnswerIsLostIsNotTakenForARollback(t *testing.T) {
	t.Parallel()
	k := newTwo(t)
	database, proxy := behind(t, k.Kit)
	err := database.As(t.Context(), authz.System("test"), func(ctx context.Context, w *tx.Tx) error {
		_, err := w.Exec(ctx, `UPDATE instance SET health_message = 'unanswered' WHERE id = $1`, k.ours.ID)
		proxy.Swallow()
		return err
	})
	require.True(t, tx.Away(err), "%v", err)
	require.ErrorContains(t, err, "commit")
}

func TestAContextThatEndsFirstEndsACallBeforeTheBound(t *testing.T) {
	t.Parallel()
	k := newTwo(t)
	database, proxy := behind(t, k.Kit)
	require.NoError(t, database.Worker().Ping(t.Context()))
	proxy.Swallow()
	ctx, cancel := context.WithTimeout(t.Context(), impatient/5)
	defer cancel()
	_, err := database.Worker().Exec(ctx, `SELECT 1`)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestAStatementThatTakesLongIsNotCutWhileItAnswers(t *testing.T) {
	t.Parallel()
	k := newTwo(t)
	database, _ := behind(t, k.Kit)
	rows, err := database.Worker().Query(t.Context(), `SELECT pg_sleep(0.1), repeat('x', 10000)
		FROM generate_series(1, 12)`)
	require.NoError(t, err)
	seen := 0
	for rows.Next() {
		seen++
	}
	require.NoError(t, rows.Err(), "longer than the bound in all, and never silent for as long")
	require.Equal(t, 12, seen)
}
