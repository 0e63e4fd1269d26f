package procfs

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// KillTree kills everything below root until nothing is left or patience is over. Root is spared: it
// must be a child subreaper (or an init), so that what escapes by a double fork comes back to it.
func KillTree(root int, patience time.Duration) error {
	return KillUntilGone(func() ([]int, error) { return Descendants(root) }, patience)
}

// KillUntilGone kills what find returns, again and again, until it returns nothing. Several rounds are
// needed because a process may fork between the listing and the kill.
func KillUntilGone(find func() ([]int, error), patience time.Duration) error {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(3 * time.Millisecond)
	defer tick.Stop()
	for {
		pids, err := find()
		if err != nil || len(pids) == 0 {
			return err
		}
		killAll(pids)
		select {
		case <-tick.C:
		case <-deadline.C:
			return fmt.Errorf("%d processes survive SIGKILL after %s", len(pids), patience)
		}
	}
}

// killAll stops all of them before it kills any, so that no one forks while the others die. What may
// not be killed stays in the next listing, and so in the error.
func killAll(pids []int) {
	for _, signal := range []unix.Signal{unix.SIGSTOP, unix.SIGKILL} {
		for _, pid := range pids {
			_ = unix.Kill(pid, signal)
		}
	}
}

// WaitGone waits for the process's end, at most for patience, and reports whether it has ended.
func WaitGone(pid int, start uint64, patience time.Duration) bool {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for Running(pid, start) {
		select {
		case <-tick.C:
		case <-deadline.C:
			return !Running(pid, start)
		}
	}
	return true
}
