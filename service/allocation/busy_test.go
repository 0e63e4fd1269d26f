package allocation_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/rig/platformtest"
)

// hold locks a node's row until the returned function is called.
func (b *bench) hold(id ids.ID) (release func()) {
	b.t.Helper()
	conn, err := pgx.Connect(b.t.Context(), b.DSN)
	require.NoError(b.t, err)
	b.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	_, err = conn.Exec(b.t.Context(), `BEGIN`)
	require.NoError(b.t, err)
	_, err = conn.Exec(b.t.Context(), `SELECT FROM compute_node WHERE id = $1 FOR UPDATE`, id)
	require.NoError(b.t, err)
	return func() {
		_, err := conn.Exec(b.t.Context(), `ROLLBACK`)
		require.NoError(b.t, err)
	}
}

func TestPlacingPassesOverNodesThatAreHeld(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	busy, _ := b.Node(8)
	free, _ := b.Node(16)
	release := b.hold(busy.ID) // which would be chosen: it has the least room
	begun := time.Now()
	for _, one := range b.got(b.slice("many", 8, 1)) {
		require.Equal(t, free.ID, *one.NodeID)
	}
	require.Less(t, time.Since(begun), 3*time.Second, "each of them waits for a moment at most")
	release()
	require.Equal(t, busy.ID, *b.got(b.slice("one", 1, 1))[0].NodeID)
}

func TestPlacingWaitsForHeldNodesOnlyForShort(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	only, _ := b.Node(8)
	release := b.hold(only.ID)
	begun := time.Now()
	_, err := b.Request(b.admin, b.slice("many", 8, 1))
	platformtest.Refused(t, err, fault.Unavailable, "")
	// twice the three seconds, since a lock that could not be had is tried for again
	require.Less(t, time.Since(begun), 9*time.Second)
	require.Zero(t, b.Count("allocation", ""))
	time.AfterFunc(time.Second, release)
	require.Equal(t, only.ID, *b.got(b.slice("one", 1, 1))[0].NodeID, "it is waited for")
}
