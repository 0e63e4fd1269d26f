package lease

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/rig/platformtest"
)

func TestAProcessWhoseLoopHangsLetsItsLeaseEnd(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	process := New(kit.DB, slog.New(slog.DiscardHandler))
	require.NoError(t, process.Register(t.Context()))
	kit.SQL(`UPDATE worker_process SET heartbeat_at = now() - interval '5 seconds'`)
	old := `heartbeat_at < now() - interval '4 seconds'`

	process.since = process.since.Add(-2 * stalledAfter)
	process.claiming.Store(1)
	require.ErrorIs(t, process.beatUnlessStalled(t.Context()), errStalled)
	process.BeginClaim()
	require.ErrorIs(t, process.beatUnlessStalled(t.Context()), errStalled,
		"a claim after one that failed does not start the clock again")
	require.Equal(t, 1, kit.Count("worker_process", old), "the heartbeat stays as old as it was")

	process.EndClaim()
	require.NoError(t, process.beatUnlessStalled(t.Context()))
	require.Zero(t, kit.Count("worker_process", old))
	process.BeginClaim()
	require.NoError(t, process.beatUnlessStalled(t.Context()), "a claim under way is no stall")
}

// After an outage every heartbeat is old, those of living workers too: who comes back first must not bury them.
func TestLivingWorkersKeepTheirClaimsAfterAnOutage(t *testing.T) {
	t.Parallel()
	require.GreaterOrEqual(t, steady*heartbeatEvery, heartbeatEvery+beatTimeout,
		"the others have beaten before anybody is buried")
	p := &Process{beats: steady}
	p.missed()
	require.False(t, p.steadied(), "a heartbeat that failed means that the database was away")
	for range steady {
		require.False(t, p.steadied())
		p.kept()
	}
	require.True(t, p.steadied())
}
