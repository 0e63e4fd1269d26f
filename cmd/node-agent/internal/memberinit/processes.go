package memberinit

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/logfile"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit/output"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit/reaper"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/text"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

const (
	// maxProcesses bounds the names of supervised processes in a member, running or not.
	maxProcesses = 64
	// maxTail is how much of a log an inspection shows, in bytes.
	maxTail = 16 << 10
	// printedPatience bounds how long the end of a member waits for what its processes printed last.
	printedPatience = time.Second
)

// processes is the member's table of supervised processes.
type processes struct {
	settings Settings
	reap     *reaper.Reaper
	logs     *os.Root
	printed  sync.WaitGroup

	mu     sync.Mutex
	byName map[string]*process
	logOf  map[string]*logfile.Writer // open until the member ends
	closed bool
}

// start makes sure that the process runs as specified: the same specification while it runs changes nothing, another
// one is refused. A process that has ended is started again.
func (t *processes) start(spec wire.ProcessSpec) (wire.Process, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.byName[spec.Name]
	if known != nil && known.supervised() {
		if !reflect.DeepEqual(known.spec, spec) {
			return wire.Process{}, wire.Errorf(wire.CodeProcessDiffers,
				"process %q runs with another specification; stop it first", spec.Name)
		}
		return known.report(), nil
	}
	if known == nil && len(t.byName) >= maxProcesses {
		return wire.Process{}, wire.Errorf(wire.CodeLimitExceeded, "the member has %d supervised processes already",
			maxProcesses)
	}
	return t.launch(spec)
}

func (t *processes) launch(spec wire.ProcessSpec) (wire.Process, error) {
	if t.closed {
		return wire.Process{}, wire.Errorf(wire.CodeStopping, "the member is stopping")
	}
	command, err := t.settings.prepare(spec.Command, spec.Env, spec.WorkDir, spec.User)
	if err != nil {
		return wire.Process{}, err
	}
	log, err := t.logFor(spec.Name)
	if err != nil {
		return wire.Process{}, err
	}
	started := &process{
		spec: spec, command: command, reap: t.reap, log: log, printed: &t.printed,
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	if err := started.launch(); err != nil {
		return wire.Process{}, err
	}
	t.byName[spec.Name] = started
	return started.report(), nil
}

// logFor returns the log of the processes by a name, of which an ended one may have left something that still prints.
func (t *processes) logFor(name string) (*logfile.Writer, error) {
	if log := t.logOf[name]; log != nil {
		return log, nil
	}
	log, err := logfile.Open(t.logs, name, t.settings.LogBytes)
	if err != nil {
		return nil, err
	}
	t.logOf[name] = log
	return log, nil
}

// stop ends a process and reports how; an unknown one is absent, which is the state that the request wants.
func (t *processes) stop(name string) (wire.Process, error) {
	t.mu.Lock()
	known := t.byName[name]
	t.mu.Unlock()
	if known != nil {
		known.halt()
	}
	return t.inspect(name)
}

// inspect reports a process with the end of its log.
func (t *processes) inspect(name string) (wire.Process, error) {
	t.mu.Lock()
	known := t.byName[name]
	t.mu.Unlock()
	report := wire.Process{Name: name, State: StateAbsent}
	if known != nil {
		report = known.report()
	}
	var err error
	report.LogTail, _, err = tailOf(t.logs, name)
	return report, err
}

// tailOf returns the end of a process's log; false without a log.
func tailOf(logs *os.Root, name string) (string, bool, error) {
	dir, err := logs.OpenRoot(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	defer dir.Close()
	printed, err := logfile.Tail(dir, maxTail)
	return text.Tail(text.Clean(printed), maxTail), true, err
}

// settle waits until what the processes have printed is written, when nothing of them is left that prints.
func (t *processes) settle() {
	written := make(chan struct{})
	go func() {
		defer close(written)
		t.printed.Wait()
	}()
	timer := time.NewTimer(printedPatience)
	defer timer.Stop()
	select {
	case <-written:
	case <-timer.C:
	}
}

// list returns how every process fares, by name.
func (t *processes) list() []wire.Supervised {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make([]wire.Supervised, 0, len(t.byName))
	for _, known := range t.byName {
		list = append(list, known.fares())
	}
	slices.SortFunc(list, func(a, b wire.Supervised) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// stopAll ends every process, side by side.
func (t *processes) stopAll() {
	t.mu.Lock()
	t.closed = true
	var all []*process
	for _, known := range t.byName {
		all = append(all, known)
	}
	t.mu.Unlock()
	var wait sync.WaitGroup
	for _, known := range all {
		wait.Go(known.halt)
	}
	wait.Wait()
}

// LostProcess reports, from a member's directory on the node, the state of a process whose member's init has ended: it
// failed, if it was ever started.
func LostProcess(dir, name string) (wire.Process, error) {
	report := wire.Process{Name: name, State: StateAbsent}
	state, err := os.OpenRoot(filepath.Join(dir, DirState))
	if errors.Is(err, fs.ErrNotExist) {
		return report, nil
	}
	if err != nil {
		return report, err
	}
	defer state.Close()
	for _, tail := range []func(*os.Root, string) (string, bool, error){newTail, oldTail} {
		text, found, err := tail(state, name)
		if found || err != nil {
			report.State, report.LogTail = StateFailed, text
			return report, err
		}
	}
	return report, nil
}

func newTail(state *os.Root, name string) (string, bool, error) {
	logs, err := state.OpenRoot(DirLogs)
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	defer logs.Close()
	return tailOf(logs, name)
}

// oldTail finds the log that an init of an earlier agent has written.
func oldTail(state *os.Root, name string) (string, bool, error) {
	name = filepath.Join(dirProcesses, name+".log")
	if _, err := state.Lstat(name); err != nil {
		return "", false, nil
	}
	tail, err := output.Tail(state, name)
	return tail, true, err
}
