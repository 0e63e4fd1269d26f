package slurm

import (
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestJobsMayLockWhatTheirNodeAllows has members that begin with half of what they may lock, as the node's agent starts
// them, and a job from a shell that may lock hardly any. Members inherit the bound of this process; those of other
// tests do not mind.
func TestJobsMayLockWhatTheirNodeAllows(t *testing.T) {
	t.Parallel()
	var before syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(unix.RLIMIT_MEMLOCK, &before))
	half := syscall.Rlimit{Cur: min(before.Max, 1<<30) / 2, Max: before.Max}
	require.NoError(t, syscall.Setrlimit(unix.RLIMIT_MEMLOCK, &half))
	t.Cleanup(func() { require.NoError(t, syscall.Setrlimit(unix.RLIMIT_MEMLOCK, &before)) })
	b := newBench(t, "ins_lock", 1)
	allowed := b.on(b.current.Members[1].ID, "ulimit -H -l")
	require.NotEqual(t, allowed, b.on(b.current.Members[1].ID, "ulimit -S -l"))
	const job = "'ulimit -S -l; ulimit -H -l'"
	require.Equal(t, allowed+allowed, b.on(b.current.Members[0].ID, "ulimit -l 16; srun sh -c "+job))

	id := b.submit("#!/bin/sh\nsh -c "+job+"; srun sh -c "+job+"\n", nil)
	b.job(id, "COMPLETED")
	require.Equal(t, strings.Repeat(allowed, 4), awaitJob(t, b.p, b.base, b.current, id, "COMPLETED").Output)
}
