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
	status := b.succeeds(b.p.Run(b.base, d, patience))
	require.Contains(t, string(status.Evidence["lostJobs"]), `"`+id+`"`)
	require.Contains(t, string(status.Evidence["drained"]), `"jobs":0`)
	b.job(id, "CANCELLED")
}

// slurmdbd shows a job some seconds after it has taken it. One that began just before its cluster ends is counted all
// the same.
func TestAJobThatHasJustBegunIsCountedWithItsCluster(t *testing.T) {
	t.Parallel()
	b := newBench(t, "ins_just", 1)
	just := b.submit(longJob, nil)
	b.job(just, "RUNNING")
	b.run(adapter.InstanceDecommission, nil)
	require.Len(t, b.usage()["jobs job-"+just], 1)
}

// endsWithASlowDatabase decommissions a cluster while its accounts' database takes no writes for some seconds:
// slurmctld is kept until slurmdbd has taken what it hands on.
func endsWithASlowDatabase(t *testing.T, b *bench) {
	b.on(b.current.Members[0].ID, `mariadb --no-defaults -uroot --socket=/run/mysqld/mysqld.sock `+
		`-e "FLUSH TABLES WITH READ LOCK; system touch /tmp/held; DO SLEEP(5)" > /dev/null 2>&1 & `+
		`until test -e /tmp/held; do sleep 0.1; done`)
	d := b.dispatch(adapter.InstanceDecommission, nil)
	b.begin(d)
	require.Never(t, func() bool { return b.status(d).Percent > 5 }, 3*time.Second, 100*time.Millisecond,
		"daemons are stopped before slurmdbd has its accounts")
	b.succeeds(b.awaits(d, "the decommission does not end", func(s adapter.Status) bool { return s.State.Terminal() }))
}
