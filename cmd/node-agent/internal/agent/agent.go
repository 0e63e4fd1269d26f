package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/content"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/device"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/fetch"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/files"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/health"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/journal"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/logfile"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/logs"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/masks"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/metrics"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/network"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/pace"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/platform"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/sandbox"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/seal"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/task"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/traces"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/upkeep"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/volume"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/watch"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

const (
	// steadyStream is how long a stream must have lived for the next break to be tried again at once.
	steadyStream = 10 * time.Second
	// rereadDelay is how long the agent waits before it requests all tasks again because it could not take one.
	rereadDelay = 5 * time.Second
	// DefaultCacheBytes bounds what a node keeps of artifacts, in bytes, unless its options set another bound.
	DefaultCacheBytes = 20 << 30
	// DefaultLogBytes bounds what a node keeps of its members' output, in bytes, unless its options set another bound.
	DefaultLogBytes = 1 << 30
	// cacheDir holds what is kept of artifacts, in the state directory.
	cacheDir = "cache"
)

// Options are what an agent is started with.
type Options struct {
	// Traces makes a span of each task; nil makes none.
	Traces      *traces.Source
	PlatformURL string
	StateDir    string
	// EnrolTokenFile or EnrolToken bring the one-time token; needed until the node is enrolled.
	EnrolTokenFile string
	EnrolToken     string
	// Name and Address are how the node is known and reached.
	Name    string
	Address string
	// CPUs and MemoryMiB of 0 mean what the machine has; GPUs below 0 means: count them.
	CPUs          int
	MemoryMiB     int
	GPUs          int
	GPUModel      string
	SimulatedGPUs bool
	// SingleTenant offers slices of a node that keeps members as plain processes.
	SingleTenant bool
	Region       string
	SKU          string
	Labels       map[string]string
	// MemberNetwork gives members networks of their own.
	MemberNetwork bool
	// ForceProcess starts members without walls.
	ForceProcess bool
	// Runtime, MemberRoot, IDFirst and CgroupParent are how members are started; see sandbox.Options.
	Runtime string
	// SandboxRuntime and VMRuntime serve the classes SANDBOX and VM; empty offers none.
	SandboxRuntime, VMRuntime string
	MemberRoot                string
	IDFirst                   uint32
	CgroupParent              string
	Version                   string
	// Storages are what the node serves volumes from, each NAME=KIND:DIR.
	Storages []string
	// ChecksDir holds an operator's own checks of the node; empty for none.
	ChecksDir string
	// CacheBytes bounds what is kept of artifacts on the node's disk; 0 is DefaultCacheBytes.
	CacheBytes int64
	// LogBytes bounds what is kept of what all members print, and ProcessLogBytes that of one process, in bytes; 0 is
	// DefaultLogBytes and logfile.DefaultBound.
	LogBytes, ProcessLogBytes int64
	// Transport reaches the platform; nil is the default.
	Transport http.RoundTripper
}

// Agent is one node's agent. It runs once.
type Agent struct {
	options     Options
	log         *slog.Logger
	now         func() time.Time
	client      *platform.Client
	key         *seal.Key
	sandboxes   *sandbox.Manager
	masks       *masks.Keeper
	logs        *logs.Store
	metrics     *metrics.Recorder
	watcher     *watch.Watcher
	network     *network.Fabric // nil where members have the node's
	journal     *journal.Journal
	cache       *content.Cache
	inventory   gql.NodeInventoryInput
	bootID      string
	credentials *credentials
	lock        *os.File
	health      *health.Checker
	told        atomic.Bool    // the platform has this agent's inventory
	volumes     *volume.Store  // nil where the node serves none
	files       *files.Server  // of volumes; nil where the node serves none
	upkeep      *upkeep.Keeper // of volumes; nil where the node serves none
	storageNews atomic.Bool    // the storages are to be reported anew

	mu      sync.Mutex
	reread  context.CancelFunc // ends the current stream, so that everything is sent again
	waiting bool               // a reread is due
}

// New opens the state directory, which only one agent may use at a time, and finds out what the node
// can do. It does not talk to the platform.
func New(ctx context.Context, options Options, log *slog.Logger) (*Agent, error) {
	if err := options.check(); err != nil {
		return nil, err
	}
	client, err := platform.NewClient(options.PlatformURL, options.Transport)
	if err != nil {
		return nil, err
	}
	a := &Agent{options: options, log: log, now: time.Now, client: client, bootID: bootID()}
	if err := a.open(ctx); err != nil {
		a.Close()
		return nil, err
	}
	return a, nil
}

func (o Options) check() error {
	switch {
	case o.StateDir == "":
		return errors.New("state-dir: must be given")
	case o.Name == "":
		return errors.New("name: must be given")
	case o.Address == "":
		return errors.New("address: must be given")
	case o.CacheBytes < 0:
		return fmt.Errorf("cache-bytes: %d is negative", o.CacheBytes)
	case o.LogBytes < 0:
		return fmt.Errorf("log-bytes: %d is negative", o.LogBytes)
	case o.ProcessLogBytes != 0 && o.ProcessLogBytes < logfile.MinBound:
		return fmt.Errorf("process-log-bytes: %d is less than %d", o.ProcessLogBytes, logfile.MinBound)
	case o.GPUs > 64:
		return fmt.Errorf("gpus: %d is more than 64", o.GPUs)
	}
	return nil
}

func (a *Agent) open(ctx context.Context) error {
	if err := os.MkdirAll(a.options.StateDir, 0o700); err != nil {
		return fmt.Errorf("create state directory: %w", err)
	}
	var err error
	if a.lock, err = lockDir(a.options.StateDir); err != nil {
		return err
	}
	if a.key, err = seal.LoadOrCreate(a.options.StateDir); err != nil {
		return err
	}
	if err = a.openLogs(); err != nil {
		return err
	}
	given := sandbox.Options{
		StateDir: a.options.StateDir, ForceProcess: a.options.ForceProcess, SingleTenant: a.options.SingleTenant,
		Runtime: a.options.Runtime, Root: a.options.MemberRoot,
		IDFirst: a.options.IDFirst, CgroupParent: a.options.CgroupParent, ClassRuntimes: a.options.classRuntimes(),
		Address:  a.options.Address,
		LogBytes: a.options.ProcessLogBytes, Ending: a.keepLast, Log: a.log,
	}
	if err = a.openVolumes(ctx); err != nil {
		return err
	}
	given.Volumes = a.volumes
	if given.NoNetwork = a.openNetwork(ctx); given.NoNetwork == "" {
		given.Network = a.network
	}
	if a.sandboxes, err = sandbox.NewManager(ctx, given); err != nil {
		return err
	}
	if a.metrics, err = metrics.New(metrics.Options{StateDir: a.options.StateDir, Cgroups: a.sandboxes.Cgroups(),
		GPUs: device.Here(), SimulatedGPUs: a.options.SimulatedGPUs, Now: a.now, Log: a.log}); err != nil {
		return err
	}
	a.watcher = watch.New(a.options.StateDir, a.sandboxes, a.now)
	a.inventory = a.options.inventory(ctx, a.sandboxes.Isolation())
	a.health = a.checker()
	limit := a.options.CacheBytes
	if limit == 0 {
		limit = DefaultCacheBytes
	}
	if a.cache, err = content.Open(filepath.Join(a.options.StateDir, cacheDir), limit); err != nil {
		return err
	}
	var damaged int
	if a.journal, damaged, err = journal.Open(a.options.StateDir, a.now); err != nil {
		return err
	}
	if damaged > 0 {
		a.log.WarnContext(ctx, "lines of the journal were not readable", "lines", damaged)
	}
	return nil
}

func lockDir(dir string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock state directory: %w", err)
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("lock state directory: another agent uses %s", dir)
	}
	return file, nil
}

// Close releases the state directory. Members go on.
func (a *Agent) Close() {
	if a.journal != nil {
		_ = a.journal.Close()
	}
	if a.logs != nil {
		a.logs.Close()
	}
	if a.lock != nil {
		_ = a.lock.Close()
	}
}

// Run enrols the node if it has no credential, and works until ctx ends. That is not an error, and members go on.
func (a *Agent) Run(ctx context.Context) error {
	isolation := a.sandboxes.Isolation()
	a.log.InfoContext(ctx, "node agent starts", "version", a.options.Version, "name", a.options.Name, "address",
		a.options.Address,
		"isolation", isolation.Mode, "files_in_memory", isolation.Tmpfs, "because", isolation.Reason)
	err := a.ensureEnrolled(ctx)
	if err == nil {
		err = a.work(ctx)
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (a *Agent) work(ctx context.Context) error {
	a.upkeep = a.newUpkeep()
	group, ctx := errgroup.WithContext(ctx)
	reporter := newReporter(ctx, a.client, a.credentials, a.journal, a.log)
	desk := newDesk(ctx, a.journal, a.executor(), reporter, a.log, a.askAgain)
	desk.traces = a.options.Traces
	for _, entry := range a.journal.Unreported() {
		reporter.add(entry, nil)
	}
	group.Go(func() error { return a.keepCredential(ctx) })
	group.Go(func() error { return a.keepBeating(ctx) })
	group.Go(func() error { return a.health.Run(ctx) })
	group.Go(func() error {
		return a.again(ctx, "task stream", func(ctx context.Context) error { return a.stream(ctx, desk) })
	})
	group.Go(func() error { return a.keepNetwork(ctx) })
	group.Go(func() error { return a.keepVolumes(ctx) })
	group.Go(func() error { return a.logs.KeepBound(ctx) })
	group.Go(func() error { return a.metrics.Run(ctx) })
	group.Go(func() error { return a.again(ctx, "tunnel", a.tunnel) })
	err := group.Wait()
	desk.wait.Wait()
	reporter.wait.Wait()
	return err
}

func (a *Agent) executor() *task.Executor {
	return &task.Executor{
		Sandboxes: a.sandboxes, Key: a.key, Started: a.journal.Started, Redeem: a.redeem,
		Artifacts: fetch.New(a.cache, a.openDelivery, a.options.Transport, a.log),
		Logs:      a.logs, Masks: a.masks,
		NodeAddress: a.options.Address, Log: a.log,
	}
}

// again opens a connection to the platform, and after every break opens it again, until ctx ends.
func (a *Agent) again(ctx context.Context, what string, open func(context.Context) error) error {
	retry := pace.New(maxBackoff)
	for {
		opened := time.Now()
		err := open(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		a.log.WarnContext(ctx, what+" will be opened again", "error", err)
		if time.Since(opened) > steadyStream {
			retry.Reset()
		}
		if err := pace.PauseOr(ctx, retry.Step(), a.credentials.renewed); err != nil {
			return err
		}
	}
}

// stream reads tasks until the stream breaks. Each new one brings all that are open.
func (a *Agent) stream(ctx context.Context, desk *desk) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a.mu.Lock()
	a.reread = cancel
	a.mu.Unlock()
	return a.client.Tasks(ctx, a.credentials, func() { a.log.InfoContext(ctx, "task stream open") }, desk.take)
}

// askAgain opens the stream again after rereadDelay, which makes the platform send every open task.
func (a *Agent) askAgain() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waiting {
		return
	}
	a.waiting = true
	time.AfterFunc(rereadDelay, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.waiting = false
		a.reread()
	})
}
