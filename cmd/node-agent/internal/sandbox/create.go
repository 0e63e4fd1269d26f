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

	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/durable"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/procfs"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

// bootPatience bounds how long a member's init may take to be ready.
const bootPatience = 20 * time.Second

// namespaceFlags are the namespaces of a member's own; network and UTS stay the node's.
const namespaceFlags = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWIPC

// create builds the directory and starts init. What a failed start leaves is removed by Teardown.
func (m *Manager) create(ctx context.Context, dir, memberID, instanceID string) (*Client, error) {
	// Without a living init no process of the member should exist; of plain processes some may.
	if err := killStrays(dir); err != nil {
		return nil, wire.Errorf(wire.CodeSandboxFailed, "remove what an earlier sandbox left: %v", err)
	}
	settings := memberinit.Settings{
		Dir: dir, MemberID: memberID, InstanceID: instanceID, Epoch: rand.Text(),
		Mode: m.isolation.Mode, Root: "/", Hide: m.hide,
	}
	if settings.Mode == memberinit.ModeProcess {
		settings.Root = filepath.Join(dir, memberinit.DirRoot)
	}
	if err := m.prepareDirs(dir); err != nil {
		return nil, wire.Errorf(wire.CodeSandboxFailed, "prepare the sandbox: %v", err)
	}
	known, err := m.startInit(ctx, settings)
	if err != nil {
		return nil, wire.Errorf(wire.CodeSandboxFailed, "start the member's init: %v", err)
	}
	m.log.Info("sandbox started", "member", memberID, "instance", instanceID, "mode", settings.Mode, "pid", known.InitPID)
	return connect(ctx, dir, known)
}

func (m *Manager) prepareDirs(dir string) error {
	for _, name := range []string{"", memberinit.DirRoot, memberinit.DirFS, memberinit.DirRun, memberinit.DirState} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			return err
		}
	}
	if m.isolation.Mode == memberinit.ModeProcess {
		return os.Chmod(filepath.Join(dir, memberinit.DirRoot), 0o755)
	}
	return prepareLayers(dir, m.isolation.Tmpfs)
}

// prepareLayers makes the overlay's upper and work directory, on a tmpfs if asked. The upper's mode
// is the mode of the member's /.
func prepareLayers(dir string, tmpfs bool) error {
	layers := filepath.Join(dir, memberinit.DirFS)
	if tmpfs && !isMountPoint(layers) {
		if err := unix.Mount("gpuaas", layers, "tmpfs", unix.MS_NODEV, "mode=700,size=50%"); err != nil {
			return fmt.Errorf("mount tmpfs: %w", err)
		}
	}
	upper := filepath.Join(layers, "upper")
	return errors.Join(os.MkdirAll(upper, 0o755), os.Chmod(upper, 0o755), os.MkdirAll(filepath.Join(layers, "work"), 0o700))
}

// startInit executes boot in new namespaces and waits until init says that it is ready. The record is
// written as soon as the process exists, so that no crash leaves a member without one.
func (m *Manager) startInit(ctx context.Context, settings memberinit.Settings) (record, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return record{}, err
	}
	defer read.Close()
	cmd, err := memberCommand(settings, memberinit.ArgBoot)
	if err != nil {
		_ = write.Close()
		return record{}, err
	}
	complaints, err := os.Create(filepath.Join(settings.Dir, errorFile))
	if err != nil {
		_ = write.Close()
		return record{}, err
	}
	defer complaints.Close()
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = complaints, complaints, []*os.File{write}
	err = cmd.Start()
	_ = write.Close()
	if err != nil {
		return record{}, err
	}
	go func() { _ = cmd.Wait() }() // the agent's own child must be collected; it ends with the member
	known, err := m.register(settings, cmd.Process.Pid)
	if err == nil {
		err = awaitReady(ctx, read)
	}
	if err != nil {
		_ = cmd.Process.Kill()
		return record{}, err
	}
	return known, nil
}

func (m *Manager) register(settings memberinit.Settings, pid int) (record, error) {
	stat, err := procfs.ReadStat(pid)
	if err != nil {
		return record{}, err
	}
	known := record{
		MemberID: settings.MemberID, InstanceID: settings.InstanceID, Epoch: settings.Epoch, Mode: settings.Mode,
		InitPID: pid, InitStart: stat.Start, CreatedAt: time.Now().UTC(),
	}
	if settings.Mode == memberinit.ModeNamespace {
		known.PIDNamespace = procfs.Namespace(pid, "pid")
	}
	return known, m.store(settings.Dir, known)
}

// memberCommand is the agent's own binary in a session of its own, so that signals to the agent's
// group do not reach it.
func memberCommand(settings memberinit.Settings, argument string) (*exec.Cmd, error) {
	file := filepath.Join(settings.Dir, memberinit.DirState, memberinit.SettingsFile)
	if err := durable.WriteJSON(file, settings); err != nil {
		return nil, err
	}
	cmd := exec.Command("/proc/self/exe", argument, settings.Dir)
	// Found by this among the node's processes even when the agent dies before the record is written.
	cmd.Env = []string{"GOMAXPROCS=2", memberinit.EnvRoot + "=" + filepath.Join(settings.Dir, memberinit.DirRoot)}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if settings.Mode == memberinit.ModeNamespace {
		cmd.SysProcAttr.Cloneflags = namespaceFlags
	}
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
