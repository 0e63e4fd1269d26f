package operation

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter/api"
	"github.com/gpuaas/app-platform/sdk/adapter/contract"
	"github.com/gpuaas/app-platform/sdk/adapter/internal/feed"
	"github.com/gpuaas/app-platform/sdk/adapter/internal/journal"
)

// Func carries out one operation kind of one app. It returns nil when the app's own truth is reached, [contract.Fail]
// to say why it is not, or any other error for an internal failure.
//
// It must be a sequence of named, idempotent steps: after a crash of the controller it is called again with the same
// [Run], and finished steps return their old results at once. Its ctx ends at the operation's deadline and when the
// platform cancels; the function then undoes what it must with [Run.Cleanup] and returns.
type Func func(ctx context.Context, run *Run) error

// Options configures an engine.
type Options struct {
	// StateDir is the folder of the journal. It belongs to this engine alone, and must outlive restarts.
	StateDir string
	// Log is the structured log.
	Log *slog.Logger
	// MaxRunning bounds operations that run at once, 64 when 0; more are accepted and wait.
	MaxRunning int
	// Retention is how long ended operations are remembered, 30 days when 0. The newest one of an instance that still
	// exists is kept for as long.
	Retention time.Duration
	// Find returns the function for an operation kind of an app; nil when the app has no such function.
	Find func(app string, kind contract.Kind) Func
}

const (
	defaultRunning = 64
	// DefaultRetention is how long ended operations are remembered where nothing else is configured.
	DefaultRetention = 30 * 24 * time.Hour
	// maxOperations bounds the operations remembered; the oldest ended ones are forgotten first.
	maxOperations = 20000
)

// Engine journals, runs and remembers operations. Make it with [New] and Start it. It is safe for concurrent use.
type Engine struct {
	options Options
	slots   chan struct{}

	journal *journal.Journal
	feed    *feed.Feed

	ctx  context.Context
	stop context.CancelCauseFunc
	runs sync.WaitGroup

	mu         sync.Mutex
	state      engineState
	operations map[string]*operation
	instances  map[string]*knownInstance
	tombstones map[string]journal.Tombstone
}

type engineState int

const (
	engineNew engineState = iota
	engineStarted
	engineStopped
)

// New returns an engine that does nothing yet.
func New(options Options) *Engine {
	options.MaxRunning = cmp.Or(options.MaxRunning, defaultRunning)
	options.Retention = cmp.Or(options.Retention, DefaultRetention)
	return &Engine{
		options: options, slots: make(chan struct{}, options.MaxRunning),
		operations: make(map[string]*operation), instances: make(map[string]*knownInstance),
		tombstones: make(map[string]journal.Tombstone),
	}
}

// Serve calls next with a context that also ends when the engine stops; Stop waits for it. It fails with UNAVAILABLE
// when the engine is not running.
func (e *Engine) Serve(ctx context.Context, next func(context.Context) error) error {
	if !e.enter() {
		return contract.ErrorBody{Code: contract.CodeUnavailable, Message: "the adapter is not running",
			Retryable: true}
	}
	defer e.runs.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.ctx, cancel)()
	return next(ctx)
}

// Changes returns a page of the change feed after a cursor, waiting at most wait for one that is not empty.
func (e *Engine) Changes(ctx context.Context, after string, wait time.Duration) (contract.OperationsPage, error) {
	return e.feed.Wait(ctx, after, wait)
}

// Status returns the newest status of an operation; ok is false when it is not known.
func (e *Engine) Status(id string) (status contract.Status, ok bool) { return e.feed.Get(id) }

// Knows reports whether an operation has been dispatched.
func (e *Engine) Knows(id string) bool {
	_, known := e.find(id)
	return known
}

// Dispatch begins an operation, repeats the answer for one that is known, or refuses. The hash is that of the
// dispatch's specification.
func (e *Engine) Dispatch(dispatch contract.Dispatch, hash string) (Result, error) {
	op, fresh, buried := e.place(dispatch.OperationID, dispatch.Attempt)
	switch {
	case buried:
		return e.stillborn(op, dispatch, hash)
	case fresh:
		return e.begin(op, dispatch, hash)
	}
	return e.repeat(op, dispatch, hash)
}

// Instance returns an instance as it was last dispatched, without the members that have left since; ok is false when it
// is not known or decommissioned.
func (e *Engine) Instance(id string) (instance contract.Instance, members []contract.Member, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	known, ok := e.instances[id]
	if !ok || known.gone {
		return contract.Instance{}, nil, false
	}
	return known.instance, known.members, true
}

// Remembered is Instance, but returns an instance that was decommissioned too, without members, for as long as its
// operations are remembered.
func (e *Engine) Remembered(id string) (instance contract.Instance, members []contract.Member, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	known, ok := e.instances[id]
	switch {
	case !ok:
		return contract.Instance{}, nil, false
	case known.gone:
		return known.instance, nil, true
	}
	return known.instance, known.members, true
}

// Start opens the journal and resumes every operation that has not ended. It fails when another
// process uses the same state directory. Ending ctx does not stop the kit; Stop does.
func (e *Engine) Start(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state != engineNew {
		return errors.New("adapter kit: already started")
	}
	journal, err := journal.Open(e.options.StateDir)
	if err != nil {
		return err
	}
	e.journal = journal
	e.ctx, e.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	if err := e.resume(); err != nil {
		return errors.Join(err, journal.Close())
	}
	e.state = engineStarted
	return nil
}

// Stop ends the runs, which resume at the next start, and closes the journal. Safe to call twice.
func (e *Engine) Stop() {
	e.mu.Lock()
	started := e.state == engineStarted
	e.state = engineStopped
	e.mu.Unlock()
	if !started {
		return
	}
	e.stop(api.ErrStopping)
	e.runs.Wait()
	if err := e.journal.Close(); err != nil {
		e.options.Log.Error("journal not closed", "error", err)
	}
}

// enter counts a request in, unless the kit is not running; Stop waits for those counted in.
func (e *Engine) enter() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state != engineStarted {
		return false
	}
	e.runs.Add(1)
	return true
}

// resume loads the journal, oldest first, and starts what has not ended. e.mu is held.
func (e *Engine) resume() error {
	epoch, err := e.journal.Epoch()
	if err != nil {
		return err
	}
	ceiling, err := e.journal.Ceiling()
	if err != nil {
		return err
	}
	e.feed = feed.New(epoch, ceiling, e.journal.Raise)
	if err := e.feed.Reserve(); err != nil {
		return err
	}
	loaded, err := e.loadAll()
	if err != nil {
		return err
	}
	if e.tombstones, err = e.journal.Tombstones(); err != nil {
		return err
	}
	e.recallLocked(loaded)
	for _, op := range loaded {
		e.operations[op.id] = op
		if err := e.resumeOne(op); err != nil {
			return err
		}
	}
	e.sweepLocked()
	return nil
}

func (e *Engine) resumeOne(op *operation) error {
	op.mu.Lock()
	defer op.mu.Unlock()
	if op.status.State.Terminal() {
		e.feed.Restore(op.status, op.mark)
		return nil
	}
	e.options.Log.Info("resuming operation", "operation", op.id, "kind", op.dispatch.Kind, "phase", op.status.Phase)
	if err := e.feed.Put(op.status); err != nil {
		return err
	}
	e.startLocked(op, nil)
	return nil
}

func (e *Engine) loadAll() ([]*operation, error) {
	ids, err := e.journal.IDs()
	if err != nil {
		return nil, err
	}
	var loaded []*operation
	for _, id := range ids {
		op, err := load(e.journal, id)
		if err != nil {
			return nil, err
		}
		if op != nil {
			loaded = append(loaded, op)
		}
	}
	slices.SortFunc(loaded, func(a, b *operation) int { return a.began.Compare(b.began) })
	return loaded, nil
}

// sweepLocked forgets operations that ended long ago, and more when there are too many. What is
// locked right now is busy, and so not old.
func (e *Engine) sweepLocked() {
	var ended []*operation
	for _, op := range e.operations {
		if op.mu.TryLock() {
			if op.status.State.Terminal() && !e.newestLocked(op) {
				ended = append(ended, op)
			}
			op.mu.Unlock()
		}
	}
	slices.SortFunc(ended, func(a, b *operation) int { return a.touched.Compare(b.touched) })
	tooMany := len(e.operations) - maxOperations*9/10
	for i, op := range ended {
		if i >= tooMany && time.Since(op.touched) < e.options.Retention {
			return
		}
		if err := e.journal.Remove(op.id); err != nil {
			e.options.Log.Error("ended operation not deleted", "operation", op.id, "error", err)
			continue
		}
		delete(e.operations, op.id)
		e.feed.Drop(op.id)
		if known := e.instances[op.dispatch.Instance.ID]; known != nil && known.operation == op.id {
			delete(e.instances, op.dispatch.Instance.ID)
		}
	}
}

// newestLocked reports whether op is the newest operation of an instance that still exists.
func (e *Engine) newestLocked(op *operation) bool {
	known := e.instances[op.dispatch.Instance.ID]
	return known != nil && known.operation == op.id && !known.gone
}
