package engine

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/metrics"
	"github.com/gpuaas/app-platform/internal/telemetry"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/queue"
	"github.com/gpuaas/app-platform/workers/bulkhead"
	"github.com/gpuaas/app-platform/workers/lease"
	"github.com/gpuaas/app-platform/workers/together"
)

// defaultConcurrency is how many operations' steps run at once in a process.
const defaultConcurrency = 16

// After a claim the loop sleeps claimRest × the claim's duration, at most claimRestMax, so that claims take at most a
// third of the loop's time. When new operations arrive it sleeps one duration, at most wokenRestMax.
const (
	claimRest    = 2
	claimRestMax = 10 * time.Millisecond
	wokenRestMax = 4 * time.Millisecond
)

// lookBehind is how long a claim that looked behind a backlog, for others' operations, is good for.
const lookBehind = 200 * time.Millisecond

// claimTimeout bounds a claim and a sweep, writeTimeout a transaction or release of an operation, on this side of the
// connection: a database host that vanishes answers nothing, not even its own time-outs.
const (
	claimTimeout = 10 * time.Second
	writeTimeout = 20 * time.Second
)

// pollMax is the longest time between two polls of the queue when nothing wakes the engine.
const pollMax = 5 * time.Second

// Config holds what an engine needs.
type Config struct {
	DB  *tx.DB
	Hub *event.Hub
	Log *slog.Logger
	// Worker is the process whose lease holds the claims.
	Worker *lease.Process
	// Kinds are the kinds of operation that it carries out. Of several entries of one kind the first begins operations,
	// and the others carry on what earlier builds began.
	Kinds []Kind
	// Concurrency bounds steps that run at once; 0 means 16.
	Concurrency int
	// Grace is how long an adapter gets once force is used, before the platform goes on by itself; 0 means 120 seconds.
	Grace time.Duration
	// Undo is how long taking back what was half done may take; 0 means 10 minutes.
	Undo time.Duration
	// Refusals is how often an end without success may be refused before no more than the end is written; 0 means 8.
	Refusals int
	// Away are the adapters that are not called now since they do not answer; nil for none.
	Away func() []string
	// Traces makes a trace of each attempt; nil for none.
	Traces *telemetry.Source
	// Metrics counts; nil counts nothing.
	Metrics *metrics.Set
}

// The times of force and of compensation.
const (
	defaultGrace = 120 * time.Second
	defaultUndo  = 10 * time.Minute
)

// Engine claims operations and carries them on. Make it with New, then Run it.
type Engine struct {
	config Config
	actor  *authz.Actor
	begin  map[lifecycle.OperationKind]string // the step plans that operations are begun with
	plans  map[string]*Kind                   // all that are known, by name
	carry  []string                           // their names
	poke   chan struct{}                      // something is due that the queue's topic does not tell
	wakeAt chan time.Time
	looked time.Time // behind a backlog; the loop's own
	writer *together.Writer

	slots *bulkhead.Slots
	steps sync.WaitGroup
}

// New makes an engine.
func New(config Config) *Engine {
	if config.Concurrency == 0 {
		config.Concurrency = defaultConcurrency
	}
	if config.Grace == 0 {
		config.Grace = defaultGrace
	}
	if config.Undo == 0 {
		config.Undo = defaultUndo
	}
	if config.Refusals == 0 {
		config.Refusals = defaultRefusals
	}
	e := &Engine{
		config: config, actor: authz.System("worker"),
		poke: make(chan struct{}, 1), wakeAt: make(chan time.Time, 1),
	}
	e.writer = together.New(config.DB, e.actor, config.Log)
	e.slots = bulkhead.NewSlots(config.Concurrency, e.nudge)
	e.learn(config.Kinds)
	config.Metrics.Works(config.Away, e.slots.Load)
	if config.Worker != nil {
		config.Worker.Announce(e.announced())
		config.Worker.Report(e.busy)
	}
	return e
}

// Run claims and carries on until ctx ends; then it waits for running steps, which are cut, and
// hands everything over. An error is one that leaves claims behind.
func (e *Engine) Run(ctx context.Context) error {
	woken := e.config.Hub.Wait(event.QueueTopic)
	defer woken.Close()
	e.loop(ctx, woken)
	e.steps.Wait()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), letGo)
	defer cancel()
	if err := queue.HandOver(last, e.config.DB.Worker(), e.config.Worker.ID()); err != nil {
		return err
	}
	e.config.DB.Wake(event.QueueTopic)
	return nil
}

func (e *Engine) loop(ctx context.Context, woken *event.Waiter) {
	var swept time.Time
	for ctx.Err() == nil {
		if time.Since(swept) > pollMax {
			e.sweep(ctx)
			swept = time.Now()
		}
		began := time.Now()
		next, err := e.claim(ctx)
		took := time.Since(began)
		if err != nil && ctx.Err() == nil {
			e.config.Log.Error("operations could not be claimed", "error", err)
			next = time.Second
		}
		e.pause(ctx, woken, time.Now().Add(min(max(next, 0), pollMax)), min(claimRest*took, claimRestMax))
	}
}

// rest pauses until a moment, whatever becomes due meanwhile.
func (e *Engine) rest(ctx context.Context, until time.Time) {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// sweep gives back what is claimed in this process's name though nothing here carries it on: the
// answer to a claim, or a release, was lost. Only the loop claims, so nothing is claimed meanwhile.
func (e *Engine) sweep(ctx context.Context) {
	mine := e.slots.InHand()
	bounded, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	if err := queue.ReleaseLost(bounded, e.config.DB.Worker(), e.config.Worker.ID(), mine); err != nil &&
		ctx.Err() == nil {
		e.config.Log.Warn("claims that this process does not work on could not be released", "error", err)
	}
}

// pause waits until there may be something to claim. The first operation that is accepted is claimed
// at once; those that follow are claimed together, after a short rest. A slot that a step has freed is
// filled after a longer rest. A step that releases its operation for a shorter while than the loop
// would sleep brings the end of the pause forward.
func (e *Engine) pause(ctx context.Context, woken *event.Waiter, wake time.Time, rest time.Duration) {
	began, timer := time.Now(), time.NewTimer(time.Until(wake))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-woken.C:
			e.rest(ctx, began.Add(min(rest/claimRest, wokenRestMax)))
			return
		case <-e.poke:
			e.rest(ctx, began.Add(rest))
			return
		case <-timer.C:
			return
		case at := <-e.wakeAt:
			if at.Before(wake) {
				wake = at
				timer.Reset(time.Until(at))
			}
		}
	}
}

// claim claims as many operations as there are free slots, and returns for how long to wait until the next poll.
func (e *Engine) claim(ctx context.Context) (time.Duration, error) {
	for {
		room, full := e.slots.Room()
		if room == 0 {
			return pollMax, nil // a step that ends pokes
		}
		want := queue.Want{Limit: room, Full: full.Tenants, Crowded: full.Adapters,
			Narrow: time.Since(e.looked) < lookBehind, Begin: e.begin, Carry: e.carry}
		if !want.Narrow {
			e.looked = time.Now()
		}
		held, next, err := e.claimOnce(ctx, want)
		if err != nil {
			return 0, err
		}
		for _, one := range held {
			e.start(ctx, one)
		}
		if len(held) < room {
			// Rows that are due but were locked, or were released in between, are looked at again soon.
			return max(next, minWait), nil
		}
	}
}

// claimOnce claims within claimTimeout. A stop does not cut it for letGo: the database would go on with a claim that
// was cut, and could carry it out after this process has handed its claims over.
func (e *Engine) claimOnce(ctx context.Context, want queue.Want) ([]*queue.Held, time.Duration, error) {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), claimTimeout)
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(letGo, cancel) })()
	e.config.Worker.BeginClaim()
	began := time.Now()
	held, next, err := queue.Claim(bounded, e.config.DB.Worker(), e.config.Worker.ID(), want)
	e.config.Metrics.Claimed(time.Since(began), err)
	if err == nil {
		e.config.Worker.EndClaim()
	}
	return held, next, err
}

func (e *Engine) start(ctx context.Context, held *queue.Held) {
	if !e.slots.Take(held) {
		return // its holder goes on
	}
	e.config.Metrics.Waited(held.ClaimEpoch, e.config.DB.Now().Sub(held.CreatedAt))
	e.steps.Go(func() {
		defer e.slots.Give(held)
		e.drive(ctx, held)
	})
}

// busy are the adapters that operations wait for here: they have the most calls that one may have, or are not called
// since they do not answer.
func (e *Engine) busy() []string {
	busy := e.slots.Crowded()
	if e.config.Away != nil {
		busy = append(busy, e.config.Away()...)
	}
	slices.Sort(busy)
	return slices.Compact(busy)
}

func (e *Engine) nudge() {
	select {
	case e.poke <- struct{}{}:
	default:
	}
}

// due makes the loop claim again when a released operation is due.
func (e *Engine) due(at time.Time, now bool) {
	if now {
		e.nudge()
		return
	}
	select {
	case e.wakeAt <- at:
	default:
		e.nudge() // the loop is busy: let it ask the database
	}
}
