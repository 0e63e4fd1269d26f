package slurm

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// TestForcedDrainEndsThoughTheWorkerIsDead drains a worker whose slurmd was killed under a job:
// without force it must not count as drained.
func TestForcedDrainEndsThoughTheWorkerIsDead(t *testing.T) {
	t.Parallel()
	b := newBench(t, "ins_force", 1)
	worker := b.current.Members[1].ID
	id := b.submit(longJob, nil)
	b.job(id, "RUNNING")
	b.on(worker, "pkill -9 slurmd")
	d := b.dispatch(adapter.MemberDrain, nil, worker)
	b.begin(d)
	b.awaits(d, "the drain does not wait", func(s adapter.Status) bool { return len(s.WaitsFor) > 0 })
	d.Attempt, d.Force = 2, true
	status := b.succeeds(b.p.Run(b.base, d, 2*time.Minute))
	require.Contains(t, string(status.Evidence["lostJobs"]), `"`+id+`"`)
	require.Contains(t, string(status.Evidence["drained"]), `"jobs":0`)
	b.job(id, "CANCELLED")
}
