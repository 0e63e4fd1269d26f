package engine

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/queue"
	"github.com/gpuaas/app-platform/workers/lease"
)

// defaultConcurrency is how many operations' steps run at once in a process.
const defaultConcurrency = 16

// maxWaiting bounds the operations that a process holds while they wait for an adapter's answer, per running step; they use
// no concurrency slot.
const maxWaiting = 4

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

// pollMax is the longest time between two looks at the queue when nobody wakes the engine.
const pollMax = 5 * time.Second

// Config is what an engine is made of.
type Config struct {
	DB  *tx.DB
	Hub *event.Hub
	Log *slog.Logger
	// Worker is the process whose lease holds the claims.
	Worker *lease.Process
	// Kinds are the kinds of operation that it carries out. Of several entries of one kind the first begins operations, and
	// the others carry on what earlier builds began.
	Kinds []Kind
	// Concurrency bounds steps that run at once; 0 means 16.
	Concurrency int
	// Grace is how long an adapter gets once force is used, before the platform goes on by itself; 0
	// means 120 seconds.
	Grace time.Duration
	// Undo is how long taking back what was half done may take; 0 means 10 minutes.
	Undo time.Duration
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

	mu        sync.Mutex
	running   map[*queue.Held]carried
	lingering map[*queue.Held]struct{} // those of running that do nothing but wait
	wanting   bool                     // the loop passed work over for want of room
	steps     sync.WaitGroup
}

// carried names a claimed operation for the loop; the rest of it belongs to the goroutine that
// carries it on.
type carried struct {
	id, tenant ids.ID
	epoch      int
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
	e := &Engine{
		config: config, actor: authz.System("worker"),
		poke: make(chan struct{}, 1), wakeAt: make(chan time.Time, 1), running: make(map[*queue.Held]carried),
		lingering: make(map[*queue.Held]struct{}),
	}
	e.learn(config.Kinds)
	if config.Worker != nil {
		config.Worker.Announce(e.announced())
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
	e.mu.Lock()
	mine := make([]string, 0, len(e.running))
	for _, one := range e.running {
		mine = append(mine, string(one.id))
	}
	e.mu.Unlock()
	bounded, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	if err := queue.ReleaseLost(bounded, e.config.DB.Worker(), e.config.Worker.ID(), mine); err != nil && ctx.Err() == nil {
		e.config.Log.Warn("lost claims could not be given back", "error", err)
	}
}

// pause waits until there may be something to claim. The first of what is
// accepted is claimed at once, and what follows with what comes in a short rest after that; room that a
// step has made is filled after a longer one. A step that lets go of its operation for a
// shorter while than the loop would sleep brings its end forward.
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

// claim takes as much as there is room for, and answers when to look again.
func (e *Engine) claim(ctx context.Context) (time.Duration, error) {
	for {
		room, full := e.room()
		if room == 0 {
			return pollMax, nil // a step that ends pokes
		}
		want := queue.Want{Limit: room, Full: full, Narrow: time.Since(e.looked) < lookBehind, Begin: e.begin, Carry: e.carry}
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

// claimOnce claims within claimTimeout.
func (e *Engine) claimOnce(ctx context.Context, want queue.Want) ([]*queue.Held, time.Duration, error) {
	bounded, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	e.config.Worker.BeginClaim()
	held, next, err := queue.Claim(bounded, e.config.DB.Worker(), e.config.Worker.ID(), want)
	if err == nil {
		e.config.Worker.EndClaim()
	}
	return held, next, err
}

// room is how many more steps may run, and the tenants that already have their most: three quarters
// of all, so that one tenant's slow steps leave room for the others'.
func (e *Engine) room() (int, []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	counts := make(map[ids.ID]int)
	for held, one := range e.running {
		if _, waits := e.lingering[held]; !waits {
			counts[one.tenant]++
		}
	}
	var full []string
	for tenant, count := range counts {
		if count >= max(e.config.Concurrency*3/4, 1) {
			full = append(full, string(tenant))
		}
	}
	room := e.config.Concurrency + len(e.lingering) - len(e.running)
	e.wanting = room <= 0 || len(full) > 0
	return max(room, 0), full
}

func (e *Engine) start(ctx context.Context, held *queue.Held) {
	e.mu.Lock()
	for _, other := range e.running {
		if other.id == held.ID && other.epoch >= held.ClaimEpoch {
			// The database crashed and forgot the claim under which it is being carried on here:
			// this one is the same claim again, and its holder goes on.
			e.mu.Unlock()
			return
		}
	}
	e.running[held] = carried{id: held.ID, tenant: held.TenantID, epoch: held.ClaimEpoch}
	e.mu.Unlock()
	e.steps.Go(func() {
		defer e.ended(held)
		e.drive(ctx, held)
	})
}

func (e *Engine) ended(held *queue.Held) {
	e.mu.Lock()
	delete(e.running, held)
	wanting := e.wanting
	e.mu.Unlock()
	if wanting {
		e.nudge()
	}
}

// linger makes room for others while an operation in hand waits; false when too many do already.
func (e *Engine) linger(held *queue.Held) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.lingering) >= maxWaiting*e.config.Concurrency {
		return false
	}
	e.lingering[held] = struct{}{}
	if e.wanting {
		e.nudge()
	}
	return true
}

func (e *Engine) lingered(held *queue.Held) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.lingering, held)
}

func (e *Engine) nudge() {
	select {
	case e.poke <- struct{}{}:
	default:
	}
}

// due tells the loop when a released operation wants to be looked at again.
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
