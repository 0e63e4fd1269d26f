package tx_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/rig/platformtest"
)

// skewed is a machine's clock that somebody sets.
type skewed struct{ by atomic.Int64 }

func (s *skewed) now() time.Time { return time.Now().Add(time.Duration(s.by.Load())) }

func TestAProcessWhoseClockIsOffDoesNotOpenTheDatabase(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	for by, refused := range map[time.Duration]bool{-3 * time.Second: true, 3 * time.Second: true, time.Second: false,
		-time.Second: false} {
		machine := &skewed{}
		machine.by.Store(int64(by))
		database, err := tx.Open(t.Context(), kit.DSN, tx.Options{Connections: 1, Now: machine.now})
		if refused {
			require.ErrorIs(t, err, tx.ErrSkew, by)
			require.ErrorContains(t, err, "NTP", "the remedy is named")
			continue
		}
		require.NoError(t, err, by)
		database.Close()
	}
}

func TestWhatIsWrittenIsByTheDatabasesClockAndTheProcessStops(t *testing.T) {
	t.Parallel()
	k := newTwo(t)
	for _, by := range []time.Duration{time.Hour, -time.Hour} {
		machine := &skewed{}
		database, err := tx.Open(t.Context(), k.DSN, tx.Options{Connections: 2, Now: machine.now})
		require.NoError(t, err)
		t.Cleanup(database.Close)
		stopped := make(chan error, 1)
		go func() { stopped <- database.KeepTime(t.Context()) }()
		machine.by.Store(int64(by))
		set := time.Now()
		near := func(moment time.Time) {
			t.Helper()
			require.WithinDuration(t, time.Now(), moment, time.Second)
		}
		near(database.Now())
		require.NoError(t, database.Write(k.As(k.admin), func(_ context.Context, w *tx.Tx) error {
			near(w.Now)
			return nil
		}))
		require.NoError(t, database.As(t.Context(), authz.System("test"), func(ctx context.Context, w *tx.Tx) error {
			near(w.Now)
			var ahead bool
			require.NoError(t, w.QueryRow(ctx, `SELECT $1::timestamptz > clock_timestamp()`, w.Now).Scan(&ahead))
			require.False(t, ahead, "it is in nobody's future")
			return nil
		}))
		require.NoError(t, database.AsPipelined(t.Context(), authz.System("test"), func(*pgx.Batch) {},
			func(_ context.Context, w *tx.Tx, _ *pgx.Batch) error { near(w.Now); return nil }))
		require.ErrorIs(t, <-stopped, tx.ErrSkew)
		require.Less(t, time.Since(set), 10*time.Second)
		require.InDelta(t, by.Seconds(), database.Skew().Seconds(), 1)
	}
}

// A node's credentials are minted by servers whose clocks differ: the one that was written later has the lower id.
func TestTheNodesLaterCredentialEndsTheEarlierWhateverTheirIDsSay(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	text, secret := token.Mint(token.Node)
	node, before := kit.Node(0)
	kit.SQL(`INSERT INTO node_credential (id, node_id, secret_hash, expires_at, created_at)
		VALUES ($1, $2, $3, now() + interval '1 hour', now())`, secret.ID, node.ID, secret.Hash)
	require.Less(t, string(secret.ID), string(idOf(t, before)))
	entered(t, kit, before)
	entered(t, kit, text)
	refused(t, kit, before, "UNAUTHENTICATED")
	entered(t, kit, text)
}
