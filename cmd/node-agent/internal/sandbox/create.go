package sandbox

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/durable"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/procfs"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/roster"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

// bootPatience bounds how long a member's init may take to be ready.
const bootPatience = 20 * time.Second

// create builds the directory and starts init. What a failed start leaves is removed by Teardown.
func (m *Manager) create(ctx context.Context, dir string, member Member) (*Client, error) {
	isolation := m.Isolation()
	if err := errors.Join(isolation.refuses(member.Walls), m.refusesVolumes(member.Walls)); err != nil {
		return nil, err
	}
	if err := m.clear(ctx, dir, member.ID); err != nil {
		return nil, wire.Errorf(wire.CodeSandboxFailed, "remove what an earlier sandbox left: %v", err)
	}
	settings := memberinit.Settings{
		Dir: dir, MemberID: member.ID, InstanceID: member.InstanceID, Epoch: rand.Text(),
		Mode: isolation.Mode, Root: "/",
		LogBytes: m.options.LogBytes,
	}
	start := m.startContainer
	if settings.Mode == memberinit.ModeProcess {
		settings.Root = filepath.Join(dir, memberinit.DirRoot)
		start = m.startPlain
	}
	known, err := start(ctx, settings, member)
	if err != nil {
		return nil, sandboxFailed(err)
	}
	m.log.Info("sandbox started", "member_id", member.ID, "app_instance_id", member.InstanceID, "mode",
		settings.Mode, "pid", known.InitPID)
	return connect(ctx, dir, known)
}

// clear removes what an earlier init of the member left beside its files. Without a living init no process of the
// member should exist; of plain processes some may. A member that the node has not seen has left nothing: the process
// table is not searched for it.
func (m *Manager) clear(ctx context.Context, dir, memberID string) error {
	if _, err := os.Lstat(dir); errors.Is(err, os.ErrNotExist) && m.oci != nil && !m.oci.knows(memberID) &&
		len(m.groups(memberID)) == 0 {
		return nil
	}
	return errors.Join(m.killStrays(dir), m.dismantle(ctx, memberID))
}

// sandboxFailed keeps the code of an error that has one.
func sandboxFailed(err error) error {
	if coded := wire.AsError(err); coded.Code != wire.CodeInternal {
		return err
	}
	return wire.Errorf(wire.CodeSandboxFailed, "start the member: %v", err)
}

// startPlain starts the init of a member without walls.
func (m *Manager) startPlain(ctx context.Context, settings memberinit.Settings, member Member) (roster.Record, error) {
	if err := makeDirs(settings.Dir, memberinit.DirRoot, memberinit.DirRun, memberinit.DirState); err != nil {
		return roster.Record{}, err
	}
	if err := os.Chmod(filepath.Join(settings.Dir, memberinit.DirRoot), 0o755); err != nil {
		return roster.Record{}, err
	}
	return m.startInit(ctx, settings, roster.Record{Class: member.Walls.Class})
}

func makeDirs(dir string, names ...string) error {
	for _, name := range append([]string{""}, names...) {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			return err
		}
	}
	return nil
}

// startInit executes boot and waits until init says that it is ready. The record is
// written as soon as the process exists, so that no crash leaves a member without one.
func (m *Manager) startInit(ctx context.Context, s memberinit.Settings, known roster.Record) (roster.Record, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return roster.Record{}, err
	}
	defer read.Close()
	cmd, err := memberCommand(s, memberinit.ArgBoot)
	if err != nil {
		_ = write.Close()
		return roster.Record{}, err
	}
	complaints, err := os.Create(filepath.Join(s.Dir, errorFile))
	if err != nil {
		_ = write.Close()
		return roster.Record{}, err
	}
	defer complaints.Close()
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = complaints, complaints, []*os.File{write}
	err = cmd.Start()
	_ = write.Close()
	if err != nil {
		return roster.Record{}, err
	}
	go func() { _ = cmd.Wait() }() // the agent's own child must be collected; it ends with the member
	known, err = m.register(s, known, cmd.Process.Pid)
	if err == nil {
		err = awaitReady(ctx, read)
	}
	if err != nil {
		_ = cmd.Process.Kill()
		return roster.Record{}, err
	}
	return known, nil
}

// register writes the record of a new init, with what is known of it already.
func (m *Manager) register(settings memberinit.Settings, known roster.Record, pid int) (roster.Record, error) {
	stat, err := procfs.ReadStat(pid)
	if err != nil {
		return roster.Record{}, err
	}
	known.MemberID, known.InstanceID, known.Epoch, known.Mode = settings.MemberID, settings.InstanceID, settings.Epoch,
		settings.Mode
	known.InitPID, known.InitStart, known.CreatedAt = pid, stat.Start, time.Now().UTC()
	if settings.Mode == memberinit.ModeContainer {
		known.PIDNamespace = procfs.Namespace(pid, "pid")
	}
	return known, roster.Store(settings.Dir, known)
}

// memberCommand is the agent's own binary in a session of its own, so that signals to the agent's
// group do not reach it.
func memberCommand(settings memberinit.Settings, argument string) (*exec.Cmd, error) {
	file := filepath.Join(settings.Dir, memberinit.DirState, memberinit.SettingsFile)
	if err := durable.NoteJSON(file, settings, 0o600); err != nil {
		return nil, err
	}
	cmd := exec.Command("/proc/self/exe", argument, settings.Dir)
	// Found by this among the node's processes even when the agent dies before the record is written.
	cmd.Env = []string{"GOMAXPROCS=2", memberinit.EnvRoot + "=" + filepath.Join(settings.Dir, memberinit.DirRoot)}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd, nil
}

// awaitReady reads init's one line.
func awaitReady(ctx context.Context, status *os.File) error {
	deadline, ok := ctx.Deadline()
	if limit := time.Now().Add(bootPatience); !ok || deadline.After(limit) {
		deadline = limit
	}
	if err := status.SetReadDeadline(deadline); err != nil {
		return err
	}
	line, err := bufio.NewReader(status).ReadString('\n')
	line = strings.TrimSpace(line)
	switch {
	case line == "ready":
		return nil
	case line != "":
		return errors.New(line)
	}
	return fmt.Errorf("it ended before it was ready: %w", err)
}
