// Package chores runs jobs that have an input which must not be lost, on River, in a schema of its own of the same
// database: what a job is about is written in the transaction that makes it. Any number of processes share the jobs;
// one of them leads and looks after those that are scheduled, stuck or over.
//
// River would wake its workers by NOTIFY inside the transaction, which serialises commits. Here nothing is notified
// there: the caller that makes a job wakes Topic after the commit, through the hub that wakes everything else, and a
// poll backs it up.
//
//	a job that is due now runs     at once when its transaction woke Topic, else within 5 s
//	a job that is scheduled        within 10 s of its time: the leader looks every 5 s, then the poll
//	a killed process's job         30 s after the job may be taken for stuck; 15 s more when that process led
//	a job's arguments              ids alone: every reader of the schema sees them
package chores

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

// Schema is River's own schema in the database.
const Schema = "river"

// Topic is woken when a job has become due.
const Topic = "chores"

// The pace of the jobs.
const (
	pollEvery = 5 * time.Second
	cooldown  = 20 * time.Millisecond // between two fetches, whatever comes
	softStop  = 3 * time.Second       // for jobs under way when the process stops; then they go back
	keepDone  = time.Hour             // completed jobs
	keepDead  = 7 * 24 * time.Hour    // discarded and canceled ones
	maxTries  = 25                    // of a job that fails within the platform, such as while the database is away
	maxRetry  = time.Minute           // between two of them
)

// Config is what the jobs run with.
type Config struct {
	DB  *tx.DB
	Hub *event.Hub
	Log *slog.Logger
	// ID names this process among those that share the jobs.
	ID ids.ID
	// Workers do the jobs, by kind; Queues are how many run at once of each queue.
	Workers *river.Workers
	Queues  map[string]int
	// Periodic are jobs that the leader makes now and again.
	Periodic []*river.PeriodicJob
	// Timeout bounds a job, and Rescue, which must be longer, is when one that still runs is taken for stuck.
	Timeout, Rescue time.Duration
}

// Client makes jobs and runs them.
type Client struct {
	*river.Client[pgx.Tx]
}

// New makes a client; Run begins its work.
func New(config Config) (*Client, error) {
	queues := make(map[string]river.QueueConfig, len(config.Queues))
	for name, workers := range config.Queues {
		queues[name] = river.QueueConfig{MaxWorkers: workers}
	}
	driver := &Driver{Driver: riverpgxv5.New(config.DB.Worker()), hub: config.Hub,
		queues: slices.Sorted(maps.Keys(config.Queues))}
	client, err := river.NewClient(driver, &river.Config{
		ID: string(config.ID), Schema: Schema, Logger: config.Log, Workers: config.Workers, Queues: queues,
		PeriodicJobs:  config.Periodic,
		FetchCooldown: cooldown, FetchPollInterval: pollEvery, JobTimeout: config.Timeout,
		RescueStuckJobsAfter: config.Rescue,
		MaxAttempts:          maxTries, RetryPolicy: retry{}, SoftStopTimeout: softStop,
		CompletedJobRetentionPeriod: keepDone, CancelledJobRetentionPeriod: keepDead,
		DiscardedJobRetentionPeriod: keepDead,
		ReindexerIndexNames:         []string{}, // the workers do not own the indexes
	})
	if err != nil {
		return nil, fmt.Errorf("chores: %w", err)
	}
	return &Client{client}, nil
}

// Run works until ctx ends; jobs under way then have a moment to end, and what does not goes back to be done.
func (c *Client) Run(ctx context.Context) error {
	if err := c.Start(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("chores: %w", err)
	}
	<-c.Stopped()
	return nil
}

// Live are the states of a job that will still run: of a unique job there is one in these.
func Live() []rivertype.JobState {
	return []rivertype.JobState{rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRetryable,
		rivertype.JobStateRunning, rivertype.JobStateScheduled}
}

// retry spaces the tries of a job that failed: 1 s, 2 s, 4 s, … up to a minute, a fifth more or less.
type retry struct{}

// NextRetry implements river.ClientRetryPolicy.
func (retry) NextRetry(job *rivertype.JobRow) time.Time {
	wait := min(time.Second<<min(max(len(job.Errors), 0), 6), maxRetry)
	return time.Now().UTC().Add(Jitter(wait))
}

// Jitter is a fifth more or less than d, at random, so that what failed together does not come back together.
func Jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.8 + 0.4*rand.Float64())) // #nosec G404 -- it spreads load and guards nothing
}
