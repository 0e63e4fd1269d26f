// Package meter records usage: capacity from what nodes' agents have proved of each allocation, the size of volumes
// from their first proof to their last, and an app's own dimensions from its adapter, page by page behind a durable
// cursor. Any number of processes do it at once: the row of a source is locked while its usage is recorded, and passed
// over by the others, and cursor and records are committed together, so that a process that is killed leaves nothing
// half-recorded.
//
//	what                  every   bound of a look
//	capacity              5 s     100 allocations a transaction, 240 slices of a minute of each
//	storage               15 s    100 volumes a transaction, 240 slices of ten minutes of each
//	new sources of apps   15 s    500 instances
//	usage of apps         5 s     16 instances, 8 adapters' answers at once, 10 pages of 1,000 records of each
package meter

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/internal/adapterclient"
	"github.com/gpuaas/app-platform/internal/periodic"
	"github.com/gpuaas/app-platform/internal/tx"
)

// The pace of looking.
const (
	capacityEvery = 5 * time.Second
	storageEvery  = 15 * time.Second
	pullEvery     = 5 * time.Second
	findEvery     = 15 * time.Second
	jobTimeout    = 20 * time.Second
)

// Config is what metering works with.
type Config struct {
	DB     *tx.DB
	Client *adapterclient.Client
	Keys   *token.Keyring
	Log    *slog.Logger
	// Stats counts what is recorded; nil makes its own.
	Stats *Stats
}

// Stats counts what this process has recorded since it began.
type Stats struct {
	// Capacity, Storage and App are new records; Quarantined are records that were not taken.
	Capacity, Storage, App, Quarantined atomic.Int64
	// Failures are reads of adapters' usage that failed.
	Failures atomic.Int64
}

// Reading is one number of Stats, as a metric that only grows.
type Reading struct {
	// Name is in snake_case, Help one sentence.
	Name, Help string
	Value      func() int64
}

// Readings are all numbers, in a fixed order.
func (s *Stats) Readings() []Reading {
	return []Reading{
		{"capacity_records_total", "Records of capacity that were written.", s.Capacity.Load},
		{"storage_records_total", "Records of volumes' sizes that were written.", s.Storage.Load},
		{"app_records_total", "Records of adapters' usage that were written.", s.App.Load},
		{"quarantined_total", "Records of adapters that were put in quarantine, each once.", s.Quarantined.Load},
		{"read_failures_total", "Reads of adapters' usage that failed.", s.Failures.Load},
	}
}

// Meter records usage.
type Meter struct {
	Config
	actor     *authz.Actor
	manifests manifests
}

// New makes a meter.
func New(config Config) *Meter {
	if config.Stats == nil {
		config.Stats = &Stats{}
	}
	return &Meter{Config: config, actor: authz.System("meter")}
}

// Run records until ctx ends; what fails is tried again at the next look.
func (m *Meter) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return periodic.Every(ctx, m.Log, "capacity", capacityEvery, m.Capacity) })
	group.Go(func() error { return periodic.Every(ctx, m.Log, "storage", storageEvery, m.Storage) })
	group.Go(func() error { return periodic.Every(ctx, m.Log, "new sources of usage", findEvery, m.Find) })
	group.Go(func() error { return periodic.Every(ctx, m.Log, "usage of apps", pullEvery, m.Pull) })
	return group.Wait()
}
