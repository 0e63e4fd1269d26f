// Package reconcile compares, again and again and without any input, what is believed with what is:
// nodes whose agents fell silent or came back, tasks that no agent ends, operations that are stuck,
// running instances as their adapters see them, allocations that no one uses, and what has expired. One
// process does it at a time, under an advisory lock that ends with its connection; another takes over
// within five seconds. Every look is bounded; what is beyond its bound comes with the next one.
//
//	what              every   bound of a look
//	nodes             3 s     100 nodes that went or came, 500 instances on each
//	drains of nodes   3 s     50 nodes, 500 members on each
//	lost nodes        3 s     100 instances
//	tasks             3 s     500 tasks
//	feeds' watermark  5 s     the oldest transaction that writes
//	overdue writers   5 s     every connection of ours
//	stuck operations  10 s    1,000 claims, 500 sleepers, 500 outlived tasks; 10,000 counted
//	orphans           1 s     100 orphans; unused allocations of failed operations every 30 s
//	instances         15 s    all that run, 100 a page, 8 adapters' answers at once
//	members of nodes  3 s     500 members in service on nodes that are lost
//	repair            5 s     100 instances with lost members; and when one was lost or an operation has ended
//	  given up        10 s    100 instances with too few members
//	  once it ended   1 s     10 instances of the 1,000 newest operations, when one has ended
//	allocations       30 s    200 freed, 200 failed
//	audit's chain     30 s    20 batches of 1,000 entries
//	  once hinted     1 s
//	what is over      10 min  1,000 of each secret and credential, 5,000 idempotency keys
//	runtime secrets   60 s    1,000 values wiped, 1,000 rows forgotten
//	canaries          60 s    100 canaries, 20,000 launches of each
//	  once hinted     1 s     those with a launch among the 1,000 newest operations that has ended
package reconcile

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/adapterclient"
	"github.com/gpuaas/app-platform/internal/panics"
	"github.com/gpuaas/app-platform/internal/periodic"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/workers/lastline"
	"github.com/gpuaas/app-platform/workers/leader"
	"github.com/gpuaas/app-platform/workers/nodes"
	"github.com/gpuaas/app-platform/workers/reconcile/stats"
	"github.com/gpuaas/app-platform/workers/repair"
)

// The pace of looking.
const (
	lockKey          = 7305119002 // advisory lock of the process that reconciles
	nodesEvery       = 3 * time.Second
	stuckEvery       = 10 * time.Second
	observeEvery     = 15 * time.Second
	repairEvery      = 5 * time.Second
	freshEvery       = time.Second // at most, when operations end
	allocationsEvery = 30 * time.Second
	cleanEvery       = 10 * time.Minute
	jobTimeout       = 10 * time.Second
)

// Config is what the reconcilers work with.
type Config struct {
	DB *tx.DB
	// Hub wakes a look as soon as an operation has ended; nil leaves it to the pace.
	Hub    *event.Hub
	Client *adapterclient.Client
	Keys   *token.Keyring
	Log    *slog.Logger
	// Stats counts what is found and mended; nil makes its own.
	Stats *stats.Stats
	// NodeGrace is how long a silent node's members may come back before they are lost; 0 is 5 minutes.
	NodeGrace time.Duration
	// Confirm is how long after it was seen a change for the worse is looked at again before it counts; 0 is 5 seconds.
	Confirm time.Duration
}

// Reconciler runs the periodic comparisons.
type Reconciler struct {
	Config
	actor *authz.Actor

	mu       sync.Mutex
	failures map[string]int       // by instance: observations in a row that failed
	away     map[ids.ID]string    // nodes known to be silent, by name; of the goroutine that looks at nodes
	suspects map[ids.ID]time.Time // instances that looked worse once, and when they are looked at again
	mender   *repair.Repairer
	keeper   *nodes.Keeper

	oldest      int64     // the transaction that held the watermark at the last look
	oldestSince time.Time // when it was first seen there
}

// New makes a reconciler.
func New(config Config) *Reconciler {
	if config.Stats == nil {
		config.Stats = &stats.Stats{}
	}
	actor := authz.System("reconciler")
	return &Reconciler{Config: config, actor: actor, failures: make(map[string]int),
		away: make(map[ids.ID]string), mender: repair.New(config.DB, config.Log, config.NodeGrace),
		keeper: &nodes.Keeper{DB: config.DB}, suspects: make(map[ids.ID]time.Time)}
}

// Run reconciles whenever this process holds the lock, until ctx ends.
func (r *Reconciler) Run(ctx context.Context) error {
	return leader.Post{Pool: r.DB.Worker(), Lock: lockKey, Log: r.Log, Stopped: "reconciling stopped; it starts again",
		Work: r.lead}.Run(ctx)
}

// lead works until ctx ends.
func (r *Reconciler) lead(ctx context.Context) error {
	defer r.Stats.Resign()
	r.away = make(map[ids.ID]string)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return r.woken(ctx) })
	group.Go(func() error { return r.told(ctx, event.FailedTopic, "repair", r.mender.Repair) })
	group.Go(func() error { return r.told(ctx, event.EndedTopic, "repair", r.mender.Repair) })
	group.Go(func() error { return r.launches(ctx) })
	group.Go(func() error { return r.seal(ctx) })
	for _, one := range r.jobs() {
		group.Go(func() error { return periodic.Every(ctx, r.Log, one.name, one.pause, one.look) })
	}
	return group.Wait()
}

// job is a comparison that is repeated after each pause.
type job struct {
	name  string
	pause time.Duration
	look  func(context.Context) error
}

// jobs returns all of them, each with its pace; the bound of each is stated at its function.
func (r *Reconciler) jobs() []job {
	return []job{
		{"nodes", nodesEvery, r.nodes},
		{"drains of nodes", nodesEvery, r.keeper.Drains},
		{"lost nodes", nodesEvery, r.keeper.Lost},
		{"tasks", nodesEvery, r.tasks},
		{"stuck operations", stuckEvery, r.stuck},
		{"the feeds' watermark", watermarkEvery, r.watermark},
		{"overdue transactions", watermarkEvery, r.endOverdue},
		{"lines before quiet", lastline.Every, func(ctx context.Context) error { return lastline.Tell(ctx, r.DB) }},
		{"instances", observeEvery, r.observe},
		{"allocations", allocationsEvery, r.allocations},
		{"orphans", orphansEvery, r.orphans},
		{"allocations of failed operations", heldEvery, r.held},
		{"instances that seem worse", suspectsEvery, r.suspectsDue},
		{"members of lost nodes", nodesEvery, r.mender.FailOnLostNodes},
		{"repair", repairEvery, r.mender.Repair},
		{"instances without service", stuckEvery, r.mender.GiveUp},
		{"what has expired", cleanEvery, r.clean},
		{"secrets", secretsEvery, r.secrets},
		{"canaries", canariesEvery, r.canaries},
	}
}

// woken looks at once at instances whose operations have just ended, until ctx ends.
func (r *Reconciler) woken(ctx context.Context) error {
	return r.told(ctx, event.EndedTopic, "ended operations", r.pollEnded)
}

// told runs look whenever the topic is woken, at most once in freshEvery, until ctx ends.
func (r *Reconciler) told(ctx context.Context, topic, what string, look func(context.Context) error) error {
	if r.Hub == nil {
		return nil
	}
	word := r.Hub.Wait(topic)
	defer word.Close()
	pause := time.NewTimer(time.Hour)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-word.C:
		}
		if err := r.looked(ctx, what, look); err != nil && ctx.Err() == nil {
			r.Log.Warn("reconciling failed; it is tried again", "what", what, "error", err)
		}
		pause.Reset(freshEvery)
		select {
		case <-ctx.Done():
			return nil
		case <-pause.C:
		}
	}
}

// looked makes a comparison; a panic in it is an error like another.
func (r *Reconciler) looked(ctx context.Context, what string, look func(context.Context) error) error {
	return panics.Caught(r.Log, what, func() error { return look(ctx) })
}
