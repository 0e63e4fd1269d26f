package main

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/durable"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/procfs"
)

// argBoot begins the process that becomes a member's init.
const argBoot = "old-boot"

// The descriptors of package memberinit's plain init.
const (
	fdStatus = 3
	fdListen = 100
	fdState  = 101
)

// namespaceFlags are the namespaces that a member had of its own; users, network and host name were the node's.
const namespaceFlags = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWIPC

// startOld starts a member as agents did before members were containers: namespaces, an overlay on the node's own root,
// fewer capabilities. It returns when the init says that it is ready and its record is on the disk.
func startOld(dir, id string) (*exec.Cmd, error) {
	for _, name := range []string{memberinit.DirRoot, memberinit.DirFS, memberinit.DirRun, memberinit.DirState} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			return nil, err
		}
	}
	if err := layers(dir); err != nil {
		return nil, err
	}
	settings := memberinit.Settings{Dir: dir, MemberID: id, InstanceID: instanceID, Epoch: rand.Text(),
		Mode: memberinit.ModeContainer, Root: "/"}
	if err := durable.WriteJSON(filepath.Join(dir, memberinit.DirState, memberinit.SettingsFile),
		settings); err != nil {
		return nil, err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer read.Close()
	cmd := exec.Command("/proc/self/exe", argBoot, dir) // #nosec G204 -- this program
	cmd.Env, cmd.Dir, cmd.ExtraFiles = []string{"GOMAXPROCS=2"}, "/", []*os.File{write}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: namespaceFlags}
	err = cmd.Start()
	_ = write.Close()
	if err != nil {
		return nil, err
	}
	if err = register(settings, cmd.Process.Pid); err == nil {
		err = awaitReady(read)
	}
	if err != nil {
		return nil, errors.Join(err, endOld(cmd, dir))
	}
	return cmd, nil
}

func layers(dir string) error {
	upper := filepath.Join(dir, memberinit.DirFS, "upper")
	return errors.Join(os.MkdirAll(upper, 0o755), os.Chmod(upper, 0o755),
		os.MkdirAll(filepath.Join(dir, memberinit.DirFS, "work"), 0o700))
}

// register writes the record by which a Manager finds the init.
func register(settings memberinit.Settings, pid int) error {
	stat, err := procfs.ReadStat(pid)
	if err != nil {
		return err
	}
	return durable.WriteJSON(filepath.Join(settings.Dir, "sandbox.json"), map[string]any{
		"memberId": settings.MemberID, "instanceId": settings.InstanceID, "epoch": settings.Epoch,
		"mode":    settings.Mode,
		"initPid": pid, "initStart": stat.Start, "pidNamespace": procfs.Namespace(pid, "pid"),
		"createdAt": time.Now().UTC(),
	})
}

func awaitReady(status *os.File) error {
	if err := status.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return err
	}
	line, err := bufio.NewReader(status).ReadString('\n')
	switch line = strings.TrimSpace(line); {
	case line == "ready":
		return nil
	case line != "":
		return errors.New(line)
	}
	return fmt.Errorf("it ended before it was ready: %w", err)
}

// endOld kills the init, with which the kernel ends all that is in its namespaces, and removes its files.
func endOld(cmd *exec.Cmd, dir string) error {
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	return os.RemoveAll(dir)
}

// boot runs as process 1 of the new namespaces and ends by becoming init. It keeps to one thread: bounding sets and
// exec belong to threads.
func boot(dir string) error {
	runtime.LockOSThread()
	unix.Umask(0o022)
	if err := openSocket(dir); err != nil {
		return fmt.Errorf("open socket: %w", err)
	}
	if err := enterRoot(dir); err != nil {
		return err
	}
	for _, capability := range []uintptr{
		unix.CAP_SYS_MODULE, unix.CAP_SYS_RAWIO, unix.CAP_SYS_TIME, unix.CAP_SYS_BOOT, unix.CAP_LINUX_IMMUTABLE,
		unix.CAP_MAC_ADMIN, unix.CAP_MAC_OVERRIDE, unix.CAP_WAKE_ALARM,
	} {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0); err != nil && err != unix.EINVAL {
			return fmt.Errorf("drop capability %d: %w", capability, err)
		}
	}
	env := append([]string{"PATH=" + memberinit.DefaultPath}, os.Environ()...)
	return unix.Exec("/proc/self/exe", []string{"member-init", memberinit.ArgInit}, env)
}

// openSocket binds by a relative name, since a socket's path may not be longer than 107 bytes.
func openSocket(dir string) error {
	if err := os.Chdir(filepath.Join(dir, memberinit.DirRun)); err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: memberinit.SocketName}); err != nil {
		return err
	}
	if err := unix.Listen(fd, 128); err != nil {
		return err
	}
	return unix.Dup3(fd, fdListen, 0)
}
