// Package upkeep keeps the volumes of a node as the platform wants them: it grows them, deletes them with proof, and
// reports how full they are. It creates none: a volume is created with its first member or file.
package upkeep

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/pace"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/platform"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/volume"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

const (
	// askWait is how long one question waits for a change; less than a call may take.
	askWait = 15 * time.Second
	// measureEvery is how often volumes are measured, and storages tried.
	measureEvery = 5 * time.Minute
	// unknownEvery is how often a platform that knew no volumes is called again: it may have been upgraded.
	unknownEvery = time.Hour
	// maxBackoff bounds the wait between tries, of questions and of what could not be done.
	maxBackoff = 15 * time.Second
)

// Platform is how a keeper reads the wanted volumes and reports on them.
type Platform interface {
	// Volumes reads the volumes that the node looks after, waiting for another version than the known one.
	Volumes(ctx context.Context, known string, wait time.Duration) (gql.NodeVolumes, error)
	// ReportVolumes says what was found of volumes.
	ReportVolumes(ctx context.Context, reports []gql.VolumeReportInput) error
}

// Options are what a keeper works with.
type Options struct {
	Platform Platform
	Store    *volume.Store
	// Users returns the members of the node that have a volume.
	Users func(volumeID string) []string
	// News is called when the node's storages are to be reported again.
	News func()
	// Renewed is a hint that the node has a credential again.
	Renewed <-chan struct{}
	Log     *slog.Logger
}

// Keeper looks after the volumes of one node.
type Keeper struct {
	options Options
	decided atomic.Bool // whether the platform knows volumes has been found out
	knows   atomic.Bool // it does

	mu     sync.Mutex
	wanted []gql.NodeVolume
	wake   chan struct{}

	measured map[string]time.Time // of the rounds' goroutine alone
}

// New returns a keeper, which does nothing yet.
func New(options Options) *Keeper {
	wake := make(chan struct{}, 1)
	options.Store.Tell(wake) // the platform may have named a volume before it was there
	return &Keeper{options: options, wake: wake, measured: map[string]time.Time{}}
}

// Storages returns the storages to report to the platform, and whether the keeper has found out what it takes: a
// platform that knows no volumes takes none.
func (k *Keeper) Storages() (states []volume.State, decided bool) {
	if !k.decided.Load() {
		return nil, false
	}
	if !k.knows.Load() {
		return nil, true
	}
	return k.options.Store.Storages(), true
}

// Run works until ctx ends.
func (k *Keeper) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return k.ask(ctx) })
	group.Go(func() error { return k.work(ctx) })
	return group.Wait()
}

// ask learns what the platform wants, as soon as it wants anything new.
func (k *Keeper) ask(ctx context.Context) error {
	retry, known, wait := pace.New(maxBackoff), "", time.Duration(0)
	for {
		told, err := k.options.Platform.Volumes(ctx, known, wait)
		pause := time.Duration(0)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil:
			retry.Reset()
			k.decide(ctx, true)
			k.want(told, known)
			known, wait = told.Version, askWait
		case platform.Unknown(err):
			k.decide(ctx, false)
			pause = unknownEvery
		default:
			k.options.Log.WarnContext(ctx, "the volumes that the platform wants could not be read", "error", err)
			pause = retry.Step()
		}
		if pause == 0 {
			continue
		}
		if err := pace.PauseOr(ctx, pause, k.options.Renewed); err != nil {
			return err
		}
	}
}

// decide notes whether the platform knows volumes. At a change it warns if it does not, and calls News.
func (k *Keeper) decide(ctx context.Context, knows bool) {
	if before := k.knows.Swap(knows); k.decided.Swap(true) && before == knows {
		return
	}
	if !knows {
		k.options.Log.WarnContext(ctx, "the platform does not support volumes: it is older than this agent; this is "+
			"checked again every hour; storages are not reported")
	}
	k.options.News()
}

func (k *Keeper) want(told gql.NodeVolumes, known string) {
	if told.Version == known {
		return
	}
	k.mu.Lock()
	k.wanted = told.Volumes
	k.mu.Unlock()
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// work does what is wanted, at once and every few minutes. What could not be done is tried again, with pauses.
func (k *Keeper) work(ctx context.Context) error {
	retry, tried := pace.New(maxBackoff), time.Now()
	for {
		pause := measureEvery
		if done := k.round(ctx); done {
			retry.Reset()
		} else {
			pause = retry.Step()
		}
		if err := pace.PauseOr(ctx, pause, k.wake); err != nil {
			return err
		}
		if time.Since(tried) >= measureEvery {
			tried = time.Now()
			if k.options.Store.Probe(ctx) {
				k.options.News()
			}
		}
	}
}
