package parts

import (
	"log/slog"
	"time"

	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/internal/adapterclient"
	"github.com/gpuaas/app-platform/workers/bulkhead"
	"github.com/gpuaas/app-platform/workers/patience"
	"github.com/gpuaas/app-platform/workers/pins"
)

// Pace is how often things are polled whose changes also wake the platform: the polls are a backup.
type Pace struct {
	// Poll is between two questions to an adapter about an operation.
	Poll time.Duration
	// Task is between two looks at node tasks.
	Task time.Duration
	// Round is between two rounds of probes, or of residue checks, after one that failed.
	Round time.Duration
	// Grace is how long an adapter gets to finish by force, or to stop, before the platform goes on by
	// itself; 0 means 120 seconds.
	Grace time.Duration
	// Undo is how long taking back what was half done may take; 0 means 10 minutes.
	Undo time.Duration
	// Refusals is how often an end may be refused before an operation ends without more than that; 0 means 8.
	Refusals int
}

// DefaultPace is the pace of the product.
func DefaultPace() Pace {
	return Pace{Poll: 5 * time.Second, Task: 2 * time.Second, Round: 3 * time.Second}
}

// Config is what the steps work with.
type Config struct {
	Client *adapterclient.Client
	Keys   *token.Keyring
	// GraphQLURL is where adapters reach the public API.
	GraphQLURL string
	Log        *slog.Logger
	// Pace is DefaultPace when zero.
	Pace Pace
	// Breakers keep calls from adapters that do not answer; nil makes them.
	Breakers *bulkhead.Breakers
}

// Work holds the steps of all kinds.
type Work struct {
	Config
	habits    patience.Habits
	crowds    patience.Crowds
	manifests pins.Manifests
}
