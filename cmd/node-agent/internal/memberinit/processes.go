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

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit/output"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

// maxProcesses bounds the names of supervised processes in a member, running or not.
const maxProcesses = 64

// processes is the member's table of supervised processes.
type processes struct {
	settings Settings
	reap     *reaper
	logs     *os.Root

	mu     sync.Mutex
	byName map[string]*process
	closed bool
}

// start makes sure that the process runs as specified: the same specification while it runs changes
// nothing, another one is refused. One that has ended is started anew.
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
	log, err := output.OpenLog(t.logs, spec.Name+".log")
	if err != nil {
		return wire.Process{}, err
	}
	started := &process{
		spec: spec, command: command, reap: t.reap, log: log,
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	if err := started.launch(); err != nil {
		return wire.Process{}, err
	}
	t.byName[spec.Name] = started
	return started.report(), nil
}

// stop ends a process and reports how; one that is not known is absent, which is what was asked for.
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
	tail, err := output.Tail(t.logs, name+".log")
	report.LogTail = tail
	return report, err
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

// LostProcess tells, from a member's directory on the node, what became of a process whose member's
// init is gone: it failed, if it was ever started.
func LostProcess(dir, name string) (wire.Process, error) {
	report := wire.Process{Name: name, State: StateAbsent}
	root, err := os.OpenRoot(filepath.Join(dir, DirState, dirProcesses))
	if errors.Is(err, fs.ErrNotExist) {
		return report, nil
	}
	if err != nil {
		return report, err
	}
	defer root.Close()
	if _, err := root.Lstat(name + ".log"); errors.Is(err, fs.ErrNotExist) {
		return report, nil
	}
	report.State = StateFailed
	report.LogTail, err = output.Tail(root, name+".log")
	return report, err
}
