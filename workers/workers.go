// Package workers carries out what requests have recorded: operations through their steps, the
// adapters' word on them, and the periodic comparison of what is with what is believed. Any number
// of processes may run it against one database.
package workers

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/adapterclient"
	"github.com/gpuaas/app-platform/internal/custody"
	"github.com/gpuaas/app-platform/internal/dial"
	"github.com/gpuaas/app-platform/internal/metrics"
	"github.com/gpuaas/app-platform/internal/telemetry"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/workers/bulkhead"
	"github.com/gpuaas/app-platform/workers/engine"
	"github.com/gpuaas/app-platform/workers/feed"
	"github.com/gpuaas/app-platform/workers/lease"
	"github.com/gpuaas/app-platform/workers/meter"
	"github.com/gpuaas/app-platform/workers/parts"
	"github.com/gpuaas/app-platform/workers/reconcile"
	"github.com/gpuaas/app-platform/workers/reconcile/stats"
	"github.com/gpuaas/app-platform/workers/steps"
	"github.com/gpuaas/app-platform/workers/webhook"
)

// stopTimeout bounds what is left to do when the workers stop.
const stopTimeout = 5 * time.Second

// Config holds what the workers need.
type Config struct {
	// DB is the database; its hints should reach Hub.
	DB *tx.DB
	// Hub wakes the workers; the caller runs it.
	Hub *event.Hub
	// Keys sign requests to adapters and the tokens they get.
	Keys *token.Keyring
	// Client calls adapters; nil makes one from Keys and Dial.
	Client *adapterclient.Client
	// Dial is where adapters may be reached.
	Dial dial.Policy
	// PlatformURL is the public GraphQL endpoint that adapters use.
	PlatformURL string
	Log         *slog.Logger
	// Concurrency bounds steps that run at once; 0 means 16.
	Concurrency int
	// Trust is how adapters off this machine are known to be the ones that are meant.
	Trust adapterclient.Trust
	// Pace is how often things are polled whose changes also wake the platform; zero for the product's.
	Pace parts.Pace
	// Stats counts what the reconcilers find and mend; nil makes its own.
	Stats *stats.Stats
	// MeterStats counts what is metered; nil makes its own.
	MeterStats *meter.Stats
	// NodeGrace is how long a silent node's members may come back before they are lost; 0 is 5 minutes.
	NodeGrace time.Duration
	// Vault opens the signing secrets of webhooks; nil leaves webhooks to other processes.
	Vault *custody.Vault
	// WebhookDial is where webhooks may be sent besides the public Internet, WebhookStats counts what is sent; nil
	// makes its own.
	WebhookDial  dial.Policy
	WebhookStats *webhook.Stats
	// Traces makes the spans of attempts and of what is called for them; nil for none.
	Traces *telemetry.Source
	// Metrics counts what is done; nil counts nothing.
	Metrics *metrics.Set
}

// Run works until ctx ends, then hands over at once what it holds. It fails when it cannot register.
func Run(ctx context.Context, config Config) error {
	client := config.Client
	if client == nil {
		client = adapterclient.NewTrusting(config.Keys, config.Dial, config.Trust)
		client.Log, client.Metrics = config.Log, config.Metrics
		defer client.Close()
	}
	ctx = telemetry.With(ctx, config.Traces)
	breakers := &bulkhead.Breakers{}
	process := lease.New(config.DB, config.Log)
	process.Metrics = config.Metrics
	runner := engine.New(engine.Config{
		DB: config.DB, Hub: config.Hub, Log: config.Log, Worker: process, Concurrency: config.Concurrency,
		Traces: config.Traces, Metrics: config.Metrics,
		Grace: config.Pace.Grace, Undo: config.Pace.Undo, Refusals: config.Pace.Refusals, Away: breakers.Away,
		Kinds: steps.Kinds(parts.Config{Client: client, Keys: config.Keys, GraphQLURL: config.PlatformURL,
			Log: config.Log, Pace: config.Pace, Breakers: breakers}),
	})
	if err := process.Register(ctx); err != nil { // with what the engine knows
		return err
	}
	watcher := reconcile.New(reconcile.Config{DB: config.DB, Hub: config.Hub, Client: client, Keys: config.Keys,
		Log: config.Log, Stats: config.Stats, NodeGrace: config.NodeGrace})
	var hooks *webhook.Worker
	if config.Vault != nil {
		var err error
		if hooks, err = webhook.New(ctx, config.webhooks(process.ID())); err != nil {
			return errors.Join(err, process.Deregister(context.WithoutCancel(ctx)))
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	if hooks != nil {
		group.Go(func() error { return hooks.Run(ctx) })
	}
	group.Go(func() error { return process.Run(ctx) })
	group.Go(func() error { return runner.Run(ctx) })
	group.Go(func() error { return feed.New(config.DB, client, process.ID(), config.Log).Run(ctx) })
	group.Go(func() error { return watcher.Run(ctx) })
	group.Go(func() error {
		return meter.New(meter.Config{DB: config.DB, Client: client, Keys: config.Keys, Log: config.Log,
			Stats: config.MeterStats}).Run(ctx)
	})
	err := group.Wait()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	gone := process.Deregister(last)
	if err == nil {
		err = gone
	}
	return err
}

// webhooks is what webhooks are sent with.
func (c *Config) webhooks(process ids.ID) webhook.Config {
	return webhook.Config{DB: c.DB, Hub: c.Hub, Vault: c.Vault, Dial: c.WebhookDial, Log: c.Log, Process: process,
		Stats: c.WebhookStats, Traces: c.Traces, Metrics: c.Metrics}
}
