package adapter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// Config is what a kit is made of.
type Config struct {
	// Name is the adapter's registered name: the audience of every request to it.
	Name string
	// Build identifies the running build.
	Build string
	// Apps are the apps it runs; at least one.
	Apps []App
	// StateDir is where the journal lies. It belongs to this kit alone, and must outlive restarts.
	StateDir string
	// Issuer is the platform's URL, compared exactly with a request's issuer.
	Issuer string
	// Keys are the platform's public keys, usually a [KeySet].
	Keys KeySource
	// GraphQLURL is the public API, for observations and usage; empty means Issuer + "/graphql".
	GraphQLURL string
	// Log is the structured log; nil discards.
	Log *slog.Logger
	// MaxRunning bounds operations run at once, 64 when 0; more are accepted and wait.
	MaxRunning int
	// Retention is how long ended operations are remembered, 30 days when 0. The newest one of
	// an instance that still exists is kept for as long.
	Retention time.Duration
}

const (
	defaultRunning   = 64
	defaultRetention = 30 * 24 * time.Hour
	// maxOperations bounds the operations remembered; the oldest ended ones make room.
	maxOperations = 20000
)

// Kit serves the adapter contract for some apps: it verifies, journals, runs and reports. Make
// it with [New], Start it, serve its Handler, and Stop it.
type Kit struct {
	config   Config
	apps     map[string]*compiledApp
	verifier *Verifier
	slots    chan struct{}

	journal *journal
	feed    *feed

	ctx  context.Context
	stop context.CancelCauseFunc
	runs sync.WaitGroup

	mu         sync.Mutex
	state      kitState
	operations map[string]*operation
	instances  map[string]*knownInstance
	actions    actionKeys
}

type kitState int

const (
	kitNew kitState = iota
	kitStarted
	kitStopped
)

// New checks the configuration and returns a kit that does nothing yet.
func New(config Config) (*Kit, error) {
	switch {
	case config.Name == "":
		return nil, errors.New("adapter kit: name must not be empty")
	case config.StateDir == "":
		return nil, errors.New("adapter kit: state directory must not be empty")
	case config.Issuer == "" || config.Keys == nil:
		return nil, errors.New("adapter kit: issuer and keys must be set")
	case len(config.Apps) == 0:
		return nil, errors.New("adapter kit: at least one app is needed")
	}
	config.GraphQLURL = cmp.Or(config.GraphQLURL, config.Issuer+"/graphql")
	config.MaxRunning = cmp.Or(config.MaxRunning, defaultRunning)
	config.Retention = cmp.Or(config.Retention, defaultRetention)
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	apps, err := compileApps(config.Apps)
	if err != nil {
		return nil, fmt.Errorf("adapter kit: %w", err)
	}
	return &Kit{
		config: config, apps: apps,
		verifier:   &Verifier{Issuer: config.Issuer, Audience: config.Name, Keys: config.Keys},
		slots:      make(chan struct{}, config.MaxRunning),
		operations: make(map[string]*operation), instances: make(map[string]*knownInstance),
	}, nil
}

// Describe returns what the adapter says about itself.
func (k *Kit) Describe() Description {
	description := Description{ContractVersions: ContractVersions(), Name: k.config.Name, Build: k.config.Build, Apps: []AppInfo{}}
	for _, app := range k.config.Apps {
		description.Apps = append(description.Apps, app.Info())
	}
	return description
}

// Start opens the journal and resumes every operation that has not ended. It fails when another
// process uses the same state directory. Ending ctx does not stop the kit; Stop does.
func (k *Kit) Start(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.state != kitNew {
		return errors.New("adapter kit: started before")
	}
	journal, err := openJournal(k.config.StateDir)
	if err != nil {
		return err
	}
	k.journal = journal
	k.ctx, k.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	if err := k.resume(); err != nil {
		return errors.Join(err, journal.close())
	}
	k.state = kitStarted
	return nil
}

// Stop ends the runs, which resume at the next start, and closes the journal. Safe to call twice.
func (k *Kit) Stop() {
	k.mu.Lock()
	started := k.state == kitStarted
	k.state = kitStopped
	k.mu.Unlock()
	if !started {
		return
	}
	k.stop(errStopping)
	k.runs.Wait()
	if err := k.journal.close(); err != nil {
		k.config.Log.Error("journal not closed", "error", err)
	}
}

// enter counts a request in, unless the kit is not running; Stop waits for those counted in.
func (k *Kit) enter() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.state != kitStarted {
		return false
	}
	k.runs.Add(1)
	return true
}

// resume loads the journal, oldest first, and starts what has not ended. k.mu is held.
func (k *Kit) resume() error {
	epoch, err := k.journal.epoch()
	if err != nil {
		return err
	}
	ceiling, err := k.journal.ceiling()
	if err != nil {
		return err
	}
	k.feed = newFeed(epoch, ceiling, k.journal.raise)
	loaded, err := k.loadAll()
	if err != nil {
		return err
	}
	k.recallLocked(loaded)
	for _, op := range loaded {
		k.operations[op.id] = op
		if err := k.resumeOne(op); err != nil {
			return err
		}
	}
	k.sweepLocked()
	return nil
}

func (k *Kit) resumeOne(op *operation) error {
	op.mu.Lock()
	defer op.mu.Unlock()
	if op.status.State.Terminal() {
		k.feed.restore(op.status, op.mark)
		return nil
	}
	k.config.Log.Info("resuming operation", "operation", op.id, "kind", op.dispatch.Kind, "phase", op.status.Phase)
	if err := k.feed.put(op.status); err != nil {
		return err
	}
	k.startLocked(op, nil)
	return nil
}

func (k *Kit) loadAll() ([]*operation, error) {
	ids, err := k.journal.ids()
	if err != nil {
		return nil, err
	}
	var loaded []*operation
	for _, id := range ids {
		op, err := load(k.journal, id)
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
func (k *Kit) sweepLocked() {
	var ended []*operation
	for _, op := range k.operations {
		if op.mu.TryLock() {
			if op.status.State.Terminal() && !k.newestLocked(op) {
				ended = append(ended, op)
			}
			op.mu.Unlock()
		}
	}
	slices.SortFunc(ended, func(a, b *operation) int { return a.touched.Compare(b.touched) })
	tooMany := len(k.operations) - maxOperations*9/10
	for i, op := range ended {
		if i >= tooMany && time.Since(op.touched) < k.config.Retention {
			return
		}
		if err := k.journal.remove(op.id); err != nil {
			k.config.Log.Error("operation not forgotten", "operation", op.id, "error", err)
			continue
		}
		delete(k.operations, op.id)
		k.feed.drop(op.id)
		if known := k.instances[op.dispatch.Instance.ID]; known != nil && known.operation == op.id {
			delete(k.instances, op.dispatch.Instance.ID)
		}
	}
}

// newestLocked says whether op holds what is known of an instance that still exists.
func (k *Kit) newestLocked(op *operation) bool {
	known := k.instances[op.dispatch.Instance.ID]
	return known != nil && known.operation == op.id && !known.gone
}
