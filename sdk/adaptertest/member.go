package adaptertest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/sandbox"
	"github.com/gpuaas/app-platform/sdk/nodetask"
	"github.com/gpuaas/app-platform/sdk/procenv"
)

// member is one sandbox: a directory, and with namespaces a process that holds them.
type member struct {
	id, dir string
	init    *exec.Cmd // nil without namespaces

	mu        sync.Mutex
	processes map[string]*process

	booting sync.Mutex // one boot at a time
	boots   []booted
}

type process struct {
	spec   nodetask.StartProcess
	cmd    *exec.Cmd
	log    *tail
	exited chan struct{}
}

// newMember creates a sandbox. With namespaces it returns when commands can enter it.
func newMember(id, dir string, namespaces bool, volumes []string) (*member, error) {
	m := &member{id: id, dir: dir, processes: map[string]*process{}}
	if err := os.MkdirAll(filepath.Join(dir, "root"), 0o755); err != nil {
		return nil, err
	}
	if !namespaces {
		return m, os.MkdirAll(filepath.Join(dir, "root", "tmp"), 0o755)
	}
	m.init = exec.Command("unshare", append([]string{"--mount", "--pid", "--ipc", "--fork", "--kill-child", "sh", "-c",
		sandbox.SpaceScript, "sandbox", dir}, volumes...)...)
	m.init.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var said tail
	m.init.Stderr = &said
	if err := m.init.Start(); err != nil {
		return nil, err
	}
	// The script reports that it is ready by a file in the sandbox's own file system.
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		if m.holder() != "" &&
			m.enter(context.Background(), nodetask.Run{Command: []string{"test", "-f", "/run/sandbox-ready"}}).
				Run() ==
				nil {
			return m, nil
		}
	}
	m.destroy()
	return nil, fmt.Errorf("sandbox of %s did not start: %s", id, said.String())
}

// holder returns the process id, on the machine, of the member's first process.
func (m *member) holder() string {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", m.init.Process.Pid, m.init.Process.Pid))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(raw))
}

// enter prepares a command in the member with a clean environment.
func (m *member) enter(ctx context.Context, spec nodetask.Run) *exec.Cmd {
	root := filepath.Join(m.dir, "root")
	env := []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", "HOME=/root",
		"GPUAAS_MEMBER_ID=" + m.id,
	}
	if m.init != nil {
		root = ""
	}
	env = append(env, "GPUAAS_MEMBER_ROOT="+root)
	for _, v := range spec.Env {
		value := ""
		if v.Value != nil {
			value = *v.Value
		}
		env = append(env, v.Name+"="+value)
	}
	command := spec.Command
	if account, err := user.Lookup(spec.User); spec.User != "" && err == nil {
		command = append(
			[]string{"setpriv", "--reuid=" + account.Uid, "--regid=" + account.Gid, "--init-groups", "--"},
			command...)
	}
	if m.init != nil {
		// The directory must be entered from within: nsenter itself would resolve it outside.
		inside := []string{"sh", "-c", `cd "$0" && exec "$@"`, "/" + strings.TrimPrefix(spec.WorkDir, "/")}
		command = slices.Concat([]string{"nsenter", "-t", m.holder(), "-m", "-p", "-i", "-r", "--"}, inside, command)
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = env
	if m.init == nil {
		cmd.Dir = filepath.Join(root, spec.WorkDir)
	}
	cmd.WaitDelay = time.Second
	return cmd
}

// command runs a command to its end. A non-zero exit code is an error beside the result.
func (m *member) command(ctx context.Context, spec nodetask.Run) (map[string]any, error) {
	if len(spec.Command) == 0 {
		return nil, errors.New("command: must name a program")
	}
	cmd := m.enter(ctx, spec)
	cmd.Stdin = strings.NewReader(spec.Stdin)
	var stdout, stderr tail
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	code := -1
	if cmd.ProcessState != nil {
		code = cmd.ProcessState.ExitCode()
	}
	return map[string]any{"exitCode": code, "stdout": stdout.String(), "stderr": stderr.String(),
		"truncated": false}, err
}

// start runs a supervised process. Its process id inside the member is kept in a file there, for
// the signal that stops it.
func (m *member) start(spec nodetask.StartProcess) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if held, ok := m.processes[spec.Name]; ok && held.running() {
		if !nodetask.Same(&held.spec, &spec) {
			return fmt.Errorf("process %s runs with another spec", spec.Name)
		}
		return nil
	}
	wrapper := []string{"sh", "-c", `echo $$ > "$GPUAAS_MEMBER_ROOT/tmp/$0.pid"; exec "$@"`, spec.Name}
	run := nodetask.Run{
		Command: append(wrapper, spec.Command...), Env: spec.Env, WorkDir: spec.WorkDir, User: spec.User,
	}
	p := &process{spec: spec, cmd: m.enter(context.Background(), run), log: &tail{}, exited: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	if err := p.cmd.Start(); err != nil {
		return err
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.exited)
	}()
	m.processes[spec.Name] = p
	return nil
}

func (p *process) running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// stop sends a supervised process its stop signal, and kills it when it outlives its stop time, as a node does.
func (m *member) stop(ctx context.Context, name string) error {
	m.mu.Lock()
	p, ok := m.processes[name]
	delete(m.processes, name)
	m.mu.Unlock()
	if !ok || !p.running() {
		return nil
	}
	signal := strings.TrimPrefix(strings.ToUpper(cmp.Or(p.spec.StopSignal, "TERM")), "SIG")
	if err := m.signal(ctx, name, signal); err != nil {
		return err
	}
	select {
	case <-p.exited:
		return nil
	case <-time.After(p.spec.StopTimeout()):
	}
	if err := m.signal(ctx, name, "KILL"); err != nil {
		return err
	}
	<-p.exited
	return nil
}

// signal sends a supervised process a signal, from inside the member.
func (m *member) signal(ctx context.Context, name, signal string) error {
	kill := nodetask.Run{
		Command: []string{"sh", "-c", `kill -"$1" "$(cat "$GPUAAS_MEMBER_ROOT/tmp/$0.pid")"`, name, signal},
	}
	_, err := m.command(ctx, kill)
	return err
}

// inspect returns the state of a supervised process; an unknown one is absent.
func (m *member) inspect(name string) map[string]any {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, ok := m.processes[name]
	state := "absent"
	switch {
	case ok && p.running():
		state = "running"
	case ok && p.cmd.ProcessState.Success():
		state = "exited"
	case ok:
		state = "failed"
	}
	result := map[string]any{"name": name, "state": state}
	if ok {
		result["logTail"] = p.log.String()
	}
	return result
}

// destroy kills all processes of the member and deletes its directory.
func (m *member) destroy() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.init == nil {
		m.killAll()
	}
	if m.init != nil {
		_ = m.init.Process.Kill() // takes the namespace's first process, and with it all others
		_ = m.init.Wait()
	}
	for _, p := range m.processes {
		<-p.exited
	}
	_ = os.RemoveAll(m.dir)
}

// killAll kills every process of a member without namespaces, also those that a command has put
// into the background, until none is left or a second has passed.
func (m *member) killAll() {
	for deadline := time.Now().Add(time.Second); time.Now().Before(deadline); {
		left := m.pids()
		if len(left) == 0 {
			return
		}
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// pids returns the member's live processes on this machine, by the environment that they inherit.
func (m *member) pids() []int {
	mark := "GPUAAS_MEMBER_ROOT=" + filepath.Join(m.dir, "root")
	if m.init != nil {
		mark = "GPUAAS_MEMBER_ID=" + m.id
	}
	processes, _ := filepath.Glob("/proc/[0-9]*")
	var found []int
	for _, name := range processes {
		if pid, err := strconv.Atoi(filepath.Base(name)); err == nil && procenv.Has(pid, mark) {
			found = append(found, pid)
		}
	}
	return found
}

// kill kills a supervised process with SIGKILL and waits for its end.
func (m *member) kill(name string) error {
	m.mu.Lock()
	p, ok := m.processes[name]
	m.mu.Unlock()
	if !ok || !p.running() {
		return fmt.Errorf("process %s is not running", name)
	}
	command := nodetask.Run{
		Command: []string{"sh", "-c", `kill -KILL "$(cat "$GPUAAS_MEMBER_ROOT/tmp/$0.pid")"`, name},
	}
	if _, err := m.command(context.Background(), command); err != nil {
		return err
	}
	<-p.exited
	return nil
}

// tail keeps the last [maxOutput] bytes written to it.
type tail struct {
	mu   sync.Mutex
	kept bytes.Buffer
}

// Write implements io.Writer and never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept.Write(p)
	if over := t.kept.Len() - maxOutput; over > 0 {
		t.kept.Next(over)
	}
	return len(p), nil
}

// String returns the kept bytes.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.kept.String()
}
