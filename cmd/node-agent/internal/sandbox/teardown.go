package sandbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/procfs"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/roster"
)

const (
	// stopGrace is how long supervised processes may take to stop before they are killed.
	stopGrace = 10 * time.Second
	// killPatience bounds how long the kernel may take to end what was killed.
	killPatience = 10 * time.Second
)

// Teardown stops everything of the member, removes its mounts and its directory, and reports what is
// left, which must be nothing. It may be called again, and for a member that was never here.
func (m *Manager) Teardown(ctx context.Context, memberID string) (Residue, error) {
	dir, err := m.memberDir(memberID)
	if err != nil {
		return Residue{}, err
	}
	defer m.lock(memberID)()
	m.gone.Add(memberID)
	failed := m.remove(ctx, dir, memberID)
	left, err := m.Residue(memberID)
	if failed = errors.Join(failed, err); failed == nil && left.Empty() {
		failed = m.forget(memberID)
		m.log.Info("sandbox removed", "member_id", memberID)
	}
	return left, failed
}

// remove goes on after a failure: each step that works leaves less behind.
func (m *Manager) remove(ctx context.Context, dir, memberID string) error {
	if known := roster.Read(dir); known != nil && known.Alive() {
		endInit(ctx, dir, *known)
	}
	err := m.killStrays(dir)
	if m.options.Ending != nil {
		m.options.Ending(context.WithoutCancel(ctx), memberID)
	}
	err = errors.Join(err, m.dismantle(ctx, memberID), procfs.UnmountBelow(dir))
	if left := procfs.MountsBelow(dir); len(left) > 0 { // whatever is mounted there is not the member's to delete
		return errors.Join(err, fmt.Errorf("not deleted, as %s is still mounted", left[0]))
	}
	return errors.Join(err, roster.Remove(dir))
}

// endInit asks first, then kills. With the init of a PID namespace the kernel kills all in it.
func endInit(ctx context.Context, dir string, known roster.Record) {
	client := &Client{dir: dir, known: known}
	ctx, cancel := context.WithTimeout(ctx, stopGrace)
	defer cancel()
	if err := client.exit(ctx, stopGrace); err == nil &&
		procfs.WaitGone(known.InitPID, known.InitStart, stopGrace+killPatience) {
		return
	}
	if known.Alive() {
		_ = unix.Kill(known.InitPID, unix.SIGKILL)
	}
	procfs.WaitGone(known.InitPID, known.InitStart, killPatience)
}

// killStrays kills whatever process of the member is still found. A living init of a plain directory is
// among them.
func (m *Manager) killStrays(dir string) error {
	return procfs.KillUntilGone(func() ([]int, error) { return m.processesOf(dir) }, killPatience)
}
