package sandbox

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gpuaas/app-platform/sdk/nodetask"
)

// SpaceScript makes the root of a member with namespaces and then only reaps; its argument is the member's directory.
// It is run by unshare --mount --pid --ipc --fork.
//
//go:embed space.sh
var SpaceScript string

const (
	// spaceTime bounds the making of a member's namespaces.
	spaceTime = 10 * time.Second
	// upper is where a member with namespaces sees what it has written.
	upper = "run/sandbox-upper"
	// reaper is the command that waits in the namespaces beside the first process.
	reaper = "sleep 1000"
)

// space is the mount, PID and IPC namespaces of a member, over an overlay of this machine's root. It needs root.
type space struct {
	init   *exec.Cmd
	holder string // the first process, as this machine numbers it
}

// Enclosable returns why members cannot have namespaces on this machine; nil when they can.
func Enclosable() error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("namespaces need root")
	}
	for _, program := range []string{"unshare", "nsenter", "runuser"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("namespaces need the program %s of util-linux", program)
		}
	}
	return nil
}

// enclose makes a member's namespaces below its directory and returns when commands can enter them.
func enclose(dir string) (*space, error) {
	if err := os.MkdirAll(filepath.Join(dir, "root"), 0o755); err != nil {
		return nil, err
	}
	s := &space{init: exec.Command("unshare", "--mount", "--pid", "--ipc", "--fork", "--kill-child", "sh", "-c",
		SpaceScript, "sandbox", dir)}
	var said tail
	s.init.SysProcAttr, s.init.Stderr = &syscall.SysProcAttr{Setpgid: true}, &said
	if err := s.init.Start(); err != nil {
		return nil, err
	}
	for end := time.Now().Add(spaceTime); time.Now().Before(end); wait(context.Background(), 5*time.Millisecond) {
		if s.holder == "" {
			s.holder = childOf(s.init.Process.Pid)
		}
		if _, err := os.Stat(s.path("run/sandbox-ready")); s.holder != "" && err == nil {
			return s, nil
		}
	}
	s.end()
	return nil, fmt.Errorf("the namespaces did not start: %s", said.String())
}

// childOf returns a process's one child.
func childOf(pid int) string {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(raw))
}

// path returns a path of the member as this machine reaches it.
func (s *space) path(inside string) string { return filepath.Join("/proc", s.holder, "root", inside) }

// enter returns the command line that runs a program in the namespaces.
func (s *space) enter(spec nodetask.Run) []string {
	inside := []string{"sh", "-c", `cd "$0" && exec "$@"`, "/" + strings.TrimPrefix(spec.WorkDir, "/")}
	if spec.User != "" {
		account, _, _ := strings.Cut(spec.User, ":")
		inside = append(inside, "runuser", "-u", account, "--")
	}
	return slices.Concat([]string{"nsenter", "-t", s.holder, "-m", "-p", "-i", "-r", "--"}, inside, spec.Command)
}

// pids returns the processes in the namespaces, less those that hold them.
func (s *space) pids() (found []int) {
	here, err := os.Readlink(filepath.Join("/proc", s.holder, "ns/pid"))
	first, _ := strconv.Atoi(s.holder)
	// The reaper is a copy of the first process until it has become a program of its own.
	holders := []string{reaper, commandOf(first)}
	for pid := range processes() {
		if err != nil || pid == first {
			continue
		}
		there, gone := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "ns/pid"))
		if gone == nil && there == here && !slices.Contains(holders, commandOf(pid)) && !ended(pid) {
			found = append(found, pid)
		}
	}
	return found
}

// end kills the first process, and with it all others in the namespaces.
func (s *space) end() {
	if pid, err := strconv.Atoi(s.holder); err == nil {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	_ = s.init.Process.Kill()
	_ = s.init.Wait()
}
