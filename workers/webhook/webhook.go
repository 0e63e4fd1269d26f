// Package webhook sends projects' events to their webhooks, at least once each.
//
//	a project's feed ──dispatch──▶ delivery rows, a job, the webhook's cursor: one transaction
//	a webhook's job  ──serve─────▶ POST, POST, … ──▶ how they went: one transaction; the next job, when something waits
//
// One process dispatches, under an advisory lock: it waits for a project's events, reads its feed below the watermark
// and writes a row for each event that a webhook chose, so that nothing is missed and nothing is there twice. A job
// serves one webhook, and there is at most one of a webhook, so that a slow or dead receiver costs one place among the
// jobs however much waits for it: jobs take turns, and with them projects.
//
//	deliveries that wait for a webhook   1,000; more events stay in the feed, at the webhook's cursor
//	requests to a webhook at once        4
//	a request                            10 s, no redirect, 64 KiB of the answer are read and none is kept
//	tries of a delivery                  8, within about a day; then it is DEAD until a user sends it again
//	a receiver that fails                is left alone after 3 in a row, then tried with one at a time after pauses that
//	                                     grow to 5 minutes, until it takes one; FAILING after 5 days
//	a killed process's deliveries        sent again within two minutes, under the same id
//
// Order is that of the feed as long as nothing fails; who needs it exactly takes the event's number.
package webhook

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/riverqueue/river"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/custody"
	"github.com/gpuaas/app-platform/internal/dial"
	"github.com/gpuaas/app-platform/internal/metrics"
	"github.com/gpuaas/app-platform/internal/telemetry"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/workers/chores"
	"golang.org/x/sync/errgroup"
)

// The bounds of serving.
const (
	queue       = "webhooks"
	places      = 64 // jobs of a process at once, which mostly wait for receivers: a project has 20 webhooks at most
	window      = 1_000
	pageSize    = 200 // events that one look takes
	batchSize   = 8   // deliveries between two looks at the webhook
	atOnce      = 4   // requests of a job at once
	maxInARow   = 3   // failures, before the receiver is left alone
	minRest     = 5 * time.Second
	maxRest     = 5 * time.Minute
	failingFor  = 5 * 24 * time.Hour
	maxAnswer   = 64 << 10
	maxTries    = 8
	keepFor     = "30 days"
	forgetEvery = 10 * time.Minute
)

// Pace is how long things take; zero is the product's.
type Pace struct {
	// Request bounds one POST: 10 s.
	Request time.Duration
	// Turn is how long a job goes on before others have their turn: 10 s.
	Turn time.Duration
	// Backoff is the pause after a delivery's try, from 1: 10 s, 1 min, 5 min, 30 min, 2 h, 6 h, 15 h, a fifth more or
	// less.
	Backoff func(try int) time.Duration
	// Rest is the pause of a receiver that has failed for a time: a quarter of that, from 5 s to 5 minutes.
	Rest func(failing time.Duration) time.Duration
}

// Config is what webhooks are sent with.
type Config struct {
	DB    *tx.DB
	Hub   *event.Hub
	Vault *custody.Vault
	// Dial is what the operator allows besides the public Internet, and the only places that are reached without TLS.
	Dial dial.Policy
	Log  *slog.Logger
	// Process names this process.
	Process ids.ID
	// Stats counts; nil makes its own.
	Stats *Stats
	Pace  Pace
	// Traces makes a trace of each try; nil for none.
	Traces *telemetry.Source
	// Metrics counts tries; nil counts nothing.
	Metrics *metrics.Set
}

// Worker sends webhooks.
type Worker struct {
	Config
	actor  *authz.Actor
	feeds  *event.Feeds
	jobs   *chores.Client
	public *http.Client // for https: the public Internet, and what is allowed
	inner  *http.Client // for http: only what is allowed
	ending <-chan struct{}
}

// New makes a worker; Run begins its work.
func New(ctx context.Context, config Config) (*Worker, error) {
	if config.Stats == nil {
		config.Stats = &Stats{}
	}
	config.Pace.complete()
	feeds, err := event.NewFeeds(ctx, config.DB.Worker())
	if err != nil {
		return nil, err
	}
	w := &Worker{Config: config, actor: authz.System("webhooks"), feeds: feeds,
		public: dial.NewClient(config.Dial, true, config.Pace.Request),
		inner:  dial.NewClient(config.Dial, false, config.Pace.Request)}
	kinds := river.NewWorkers()
	river.AddWorker(kinds, &server{Worker: w})
	river.AddWorker(kinds, &forgetter{Worker: w})
	w.jobs, err = chores.New(chores.Config{
		DB: config.DB, Hub: config.Hub, Log: config.Log, ID: config.Process, Workers: kinds,
		Queues: map[string]int{queue: places},
		Periodic: []*river.PeriodicJob{river.NewPeriodicJob(river.PeriodicInterval(forgetEvery),
			func() (river.JobArgs, *river.InsertOpts) { return forget{}, nil },
			&river.PeriodicJobOpts{RunOnStart: true})},
		Timeout: config.Pace.job(), Rescue: config.Pace.job() + config.Pace.Request,
	})
	return w, err
}

// Run dispatches and serves until ctx ends.
func (w *Worker) Run(ctx context.Context) error {
	defer w.public.CloseIdleConnections()
	defer w.inner.CloseIdleConnections()
	group, ctx := errgroup.WithContext(ctx)
	w.ending = ctx.Done()
	group.Go(func() error { return w.jobs.Run(ctx) })
	group.Go(func() error { return w.dispatch(ctx) })
	return group.Wait()
}

// complete fills in the product's pace.
func (p *Pace) complete() {
	if p.Request == 0 {
		p.Request = 10 * time.Second
	}
	if p.Turn == 0 {
		p.Turn = 10 * time.Second
	}
	if p.Rest == nil {
		p.Rest = func(failing time.Duration) time.Duration { return min(max(failing/4, minRest), maxRest) }
	}
	if p.Backoff == nil {
		p.Backoff = func(try int) time.Duration { return chores.Jitter(backoffs[min(max(try, 1), len(backoffs))-1]) }
	}
}

// job is the longest that a job can take: its turn, the batch that began at its end, and as long again for the
// database.
func (p *Pace) job() time.Duration {
	return p.Turn + 2*batchSize/atOnce*p.Request
}

// backoffs are the pauses after each try but the last.
var backoffs = [maxTries - 1]time.Duration{10 * time.Second, time.Minute, 5 * time.Minute, 30 * time.Minute,
	2 * time.Hour, 6 * time.Hour, 15 * time.Hour}
