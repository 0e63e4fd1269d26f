package sandbox

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gpuaas/app-platform/sdk/nodetask"
)

// process is one supervised process: the goroutine that started it restarts it by its policy.
type process struct {
	spec   nodetask.StartProcess
	cancel context.CancelFunc
	ended  chan struct{}

	mu       sync.Mutex
	pid      int
	restarts int
	code     *int
	began    time.Time
	log      tail
}

// command prepares a program in a process group of its own, which dies as a whole when ctx ends.
func (m *member) command(ctx context.Context, spec nodetask.Run, n *Nodes) (*exec.Cmd, error) {
	if len(spec.Command) == 0 {
		return nil, failf("SPEC_INVALID", "command must name a program")
	}
	env, err := m.environment(spec.Env, n)
	if err != nil {
		return nil, err
	}
	line, dir := spec.Command, filepath.Join(m.root, spec.WorkDir)
	if m.space != nil {
		line, dir = m.space.enter(spec), m.root
	}
	cmd := exec.CommandContext(ctx, line[0], line[1:]...) // #nosec G204 -- what the adapter asks for runs in its member
	cmd.Env, cmd.Dir, cmd.WaitDelay = env, dir, time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if spec.User != "" && m.space == nil {
		uid, gid, err := accountOf(spec.User)
		if err != nil {
			return nil, err
		}
		if uid != os.Geteuid() {
			cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		}
	}
	m.mu.Lock()
	m.ran = true
	m.mu.Unlock()
	return cmd, nil
}

// run runs a command to its end. A non-zero exit code is an error beside the outcome.
func (m *member) run(ctx context.Context, spec nodetask.Run, n *Nodes) (Outcome, error) {
	cmd, err := m.command(ctx, spec, n)
	if err != nil {
		return Outcome{}, err
	}
	var stdout, stderr tail
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(spec.Stdin), &stdout, &stderr
	err = cmd.Run()
	if cmd.ProcessState == nil {
		return Outcome{}, failf("START_FAILED", "%w", err)
	}
	code := cmd.ProcessState.ExitCode()
	out := Outcome{ExitCode: &code, Stdout: stdout.String(), Stderr: stderr.String()}
	out.Result = map[string]any{
		"exitCode": code, "stdout": out.Stdout, "stderr": out.Stderr, "truncated": stdout.cut || stderr.cut,
	}
	if code == 0 {
		err = nil // what it left in the background may hold the output open
	}
	return out, err
}

// start supervises a process; the same spec under the same name changes nothing.
func (m *member) start(spec nodetask.StartProcess, n *Nodes) (Outcome, error) {
	m.mu.Lock()
	held, known := m.processes[spec.Name]
	count := len(m.processes)
	m.mu.Unlock()
	switch {
	case spec.Name == "":
		return Outcome{}, failf("SPEC_INVALID", "name is missing")
	case known && held.running():
		if !nodetask.Same(&held.spec, &spec) {
			return Outcome{}, failf("PROCESS_SPEC_DIFFERS", "process %s runs with another spec", spec.Name)
		}
		return m.inspect(spec.Name), nil
	case count >= maxProcesses:
		return Outcome{}, failf("LIMIT_EXCEEDED", "%d processes are too many", count)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &process{spec: spec, cancel: cancel, ended: make(chan struct{})}
	cmd, err := m.launch(ctx, p, n)
	if err != nil {
		cancel()
		return Outcome{}, err
	}
	m.mu.Lock()
	m.processes[spec.Name] = p
	m.mu.Unlock()
	go m.supervise(ctx, p, cmd, n)
	return m.inspect(spec.Name), nil
}

// launch starts the program of a supervised process once.
func (m *member) launch(ctx context.Context, p *process, n *Nodes) (*exec.Cmd, error) {
	cmd, err := m.command(
		ctx,
		nodetask.Run{Command: p.spec.Command, Env: p.spec.Env, WorkDir: p.spec.WorkDir, User: p.spec.User},
		n,
	)
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = &p.log, &p.log
	if err := cmd.Start(); err != nil {
		return nil, failf("START_FAILED", "%w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pid, p.began, p.code = cmd.Process.Pid, time.Now().UTC(), nil
	return cmd, nil
}

// supervise waits for the program's end and restarts it by its policy.
func (m *member) supervise(ctx context.Context, p *process, cmd *exec.Cmd, n *Nodes) {
	defer close(p.ended)
	for {
		_ = cmd.Wait()
		code := cmd.ProcessState.ExitCode()
		p.mu.Lock()
		p.pid, p.code = 0, &code
		again := p.spec.Restart.Policy == "always" || (p.spec.Restart.Policy == "on_failure" && code != 0)
		again = again && (p.spec.Restart.MaxRestarts == 0 || p.restarts < p.spec.Restart.MaxRestarts)
		p.restarts++
		p.mu.Unlock()
		if !again || !wait(ctx, p.spec.Restart.Backoff()) {
			return
		}
		next, err := m.launch(ctx, p, n)
		if err != nil {
			return
		}
		cmd = next
	}
}

func (p *process) running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// stop signals the process group to end, and kills it when that takes too long.
func (m *member) stop(ctx context.Context, name string) (Outcome, error) {
	m.mu.Lock()
	p, ok := m.processes[name]
	delete(m.processes, name)
	m.mu.Unlock()
	if !ok {
		return m.inspect(name), nil
	}
	p.mu.Lock()
	group := p.pid
	p.spec.Restart.Policy = "never"
	if group > 0 {
		_ = syscall.Kill(-group, signalOf(p.spec.StopSignal))
	}
	p.mu.Unlock()
	timer := time.NewTimer(p.spec.StopTimeout())
	defer timer.Stop()
	select {
	case <-p.ended:
	case <-timer.C:
	case <-ctx.Done():
	}
	p.cancel()
	<-p.ended
	m.endGroup(group)
	return m.inspect(name), nil
}

// signalOf returns a signal by its name, with or without SIG; SIGTERM for any other name.
func signalOf(name string) syscall.Signal {
	switch strings.TrimPrefix(name, "SIG") {
	case "INT":
		return syscall.SIGINT
	case "QUIT":
		return syscall.SIGQUIT
	case "KILL":
		return syscall.SIGKILL
	case "HUP":
		return syscall.SIGHUP
	}
	return syscall.SIGTERM
}

// inspect returns the state of a supervised process; an unknown one is absent.
func (m *member) inspect(name string) Outcome {
	m.mu.Lock()
	p, ok := m.processes[name]
	m.mu.Unlock()
	if !ok {
		return Outcome{Result: map[string]any{"process": map[string]any{"name": name, "state": "absent"}}}
	}
	running := p.running()
	p.mu.Lock()
	defer p.mu.Unlock()
	state := "failed"
	switch {
	case running:
		state = "running"
	case p.code != nil && *p.code == 0:
		state = "exited"
	}
	return Outcome{Result: map[string]any{"process": map[string]any{
		"name": name, "state": state, "pid": p.pid, "restarts": p.restarts, "exitCode": p.code,
		"startedAt": p.began, "logTail": p.log.String(),
	}}}
}

// destroy kills all processes of the member and deletes its directory.
func (m *member) destroy() {
	m.mu.Lock()
	processes := m.processes
	m.processes = map[string]*process{}
	m.mu.Unlock()
	for _, p := range processes {
		p.cancel()
		<-p.ended
	}
	// A process that is forked during a reading of the table is in none of its lines: the next
	// reading finds it.
	if m.space != nil {
		m.space.end()
	}
	for end := time.Now().Add(stopTime); time.Now().Before(end); wait(context.Background(), 5*time.Millisecond) {
		pids := m.pids()
		if len(pids) == 0 {
			break
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	_ = os.RemoveAll(m.root) // what is left is the residue, which is looked at next
}

// wait waits for d; it returns false when ctx ended first.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// tail keeps the last [maxOutput] bytes written to it. Safe for concurrent use.
type tail struct {
	mu   sync.Mutex
	kept bytes.Buffer
	cut  bool
}

// Write implements io.Writer and never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept.Write(p)
	if over := t.kept.Len() - maxOutput; over > 0 {
		t.kept.Next(over)
		t.cut = true
	}
	return len(p), nil
}

// String returns the kept bytes.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(t.kept.String(), "\uFFFD")
}

// errProbe is the error of a probe without anything to try.
var errProbe = errors.New("exactly one of exec, tcp and http is needed")
