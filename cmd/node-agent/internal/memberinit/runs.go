package memberinit

import (
	"errors"
	"io/fs"
	"path/filepath"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit/output"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit/reaper"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit/results"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

// maxRuns bounds the commands that run at once in a member.
const maxRuns = 64

// runs is the member's table of commands: one execution per key and fence.
type runs struct {
	settings Settings
	reap     *reaper.Reaper
	results  *results.Store

	mu     sync.Mutex
	byKey  map[string]*run
	closed bool
}

// run is one execution. Result is valid once done is closed.
type run struct {
	key            string
	fence          int64
	shim           shimmed
	stdout, stderr *output.Capture
	done           chan struct{}
	result         wire.RunResult

	mu                 sync.Mutex
	timedOut, canceled bool
}

// begin starts the run, or gives the one that is known by this key and fence. A lower fence than the
// known is refused; a higher one kills the old run, waits for its end and takes its place.
func (t *runs) begin(request wire.Run) (*run, error) {
	if err := checkKey(request.Key); err != nil {
		return nil, err
	}
	for {
		found, older, err := t.attempt(request)
		if err != nil || older == nil {
			return found, err
		}
		older.kill(false)
		<-older.done
	}
}

// attempt gives the run, or the older one that is in its way.
func (t *runs) attempt(request wire.Run) (found, older *run, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known, err := t.known(request.Key)
	switch {
	case err != nil:
		return nil, nil, err
	case known != nil && known.fence > request.Fence:
		return nil, nil, wire.Errorf(wire.CodeStaleFence, "fence %d is lower than %d, which is already known",
			request.Fence, known.fence)
	case known != nil && known.fence == request.Fence:
		return known, nil, nil
	case request.AttachOnly:
		return nil, nil, wire.Errorf(wire.CodeUnknownRun, "run %s with fence %d is not known", request.Key,
			request.Fence)
	case known != nil && !known.ended():
		return nil, known, nil
	}
	found, err = t.launch(request)
	return found, nil, err
}

func (r *run) ended() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// known looks among the living first, then on the disk.
func (t *runs) known(key string) (*run, error) {
	if found, ok := t.byKey[key]; ok {
		return found, nil
	}
	stored, err := t.results.Get(key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return finished(stored), nil
}

// finished is a run of which only the result is left.
func finished(result wire.RunResult) *run {
	done := make(chan struct{})
	close(done)
	stdout, stderr := output.NewCapture(), output.NewCapture()
	if !result.Truncated {
		_, _ = stdout.Write(result.Stdout)
		_, _ = stderr.Write(result.Stderr)
	}
	stdout.Close()
	stderr.Close()
	return &run{key: result.Key, fence: result.Fence, stdout: stdout, stderr: stderr, done: done, result: result}
}

func (t *runs) launch(request wire.Run) (*run, error) {
	if t.closed {
		return nil, wire.Errorf(wire.CodeStopping, "the member is stopping")
	}
	if len(t.byKey) >= maxRuns {
		return nil, wire.Errorf(wire.CodeLimitExceeded, "%d commands run in this member already", maxRuns)
	}
	command, err := t.settings.prepareRun(request)
	if err != nil {
		return nil, err
	}
	started := &run{
		key: request.Key, fence: request.Fence, done: make(chan struct{}),
		stdout: output.NewCapture(), stderr: output.NewCapture(),
	}
	pipes, err := openPipes()
	if err != nil {
		return nil, err
	}
	if started.shim, err = startShim(t.reap, pipes.child()); err != nil {
		pipes.closeAll()
		return nil, err
	}
	t.byKey[request.Key] = started
	go t.watch(started, watched{pipes: pipes, command: command, request: request})
	return started, nil
}

// watched is what the goroutine that owns a run needs.
type watched struct {
	pipes   *pipes
	command prepared
	request wire.Run
}

// watch owns a run from its start to its stored result.
func (t *runs) watch(r *run, w watched) {
	releaseOut := r.stdout.Follow(w.pipes.stdout.read)
	releaseErr := r.stderr.Follow(w.pipes.stderr.read)
	w.pipes.closeChild()
	go w.pipes.feed(w.command, w.request.Stdin)
	timer := time.AfterFunc(time.Duration(w.request.TimeoutMillis)*time.Millisecond, func() { r.kill(true) })
	code := <-r.shim.ended
	timer.Stop()
	_ = w.pipes.stdin.write.Close() // input that no one read must not hold the writer
	releaseOut()
	releaseErr()
	t.finish(r, code)
}

func (t *runs) finish(r *run, code int) {
	r.mu.Lock()
	r.result = wire.RunResult{Key: r.key, Fence: r.fence, ExitCode: code, TimedOut: r.timedOut, Canceled: r.canceled}
	r.mu.Unlock()
	var cutOut, cutErr bool
	r.result.Stdout, cutOut = r.stdout.Result()
	r.result.Stderr, cutErr = r.stderr.Result()
	r.result.Truncated = cutOut || cutErr
	t.mu.Lock()
	defer t.mu.Unlock()
	// Stored before it is forgotten here: at every moment the key is known in one of the two places. What
	// the disk does not take stays in memory.
	if t.results.Put(r.result) == nil {
		delete(t.byKey, r.key)
	}
	close(r.done)
}

// kill ends everything of the run. It does not wait for that.
func (r *run) kill(timeout bool) {
	r.mu.Lock()
	if !r.timedOut && !r.canceled {
		r.timedOut, r.canceled = timeout, !timeout
	}
	r.mu.Unlock()
	go r.shim.kill()
}

// cancel kills a run if it goes on; what is not known is not an error.
func (t *runs) cancel(key string) {
	t.mu.Lock()
	found := t.byKey[key]
	t.mu.Unlock()
	if found != nil {
		found.kill(false)
	}
}

// ack forgets a stored result.
func (t *runs) ack(key string) error {
	if err := checkKey(key); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.results.Drop(key)
	if found := t.byKey[key]; found != nil && found.ended() {
		delete(t.byKey, key)
	}
	return nil
}

// stop refuses new runs and kills those that go on.
func (t *runs) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for _, going := range t.byKey {
		going.kill(false)
	}
}

// checkKey keeps keys fit to be file names.
func checkKey(key string) error {
	if key == "" || len(key) > 96 || key != filepath.Base(key) || key[0] == '.' {
		return wire.Errorf(wire.CodeSpecInvalid, "key: %q is not usable", key)
	}
	return nil
}
