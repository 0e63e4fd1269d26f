// Package steps holds what each kind of operation does, one kind a file, and the steps that kinds
// share: dispatch to the adapter, waiting for its word, and the agents' evidence.
//
// The adapter's word moves an operation along; it never ends one with success by itself where the agents
// can know better. Members join, and versions change, only when the manifest's readiness probes, run by
// the agents after this dispatch, have passed; members leave only when the agents found nothing left. A
// drain is the one thing that the adapter alone can know, and silence about a member is never read as
// yes. Where the caller chose force, the outcome says what is not proved, and that is listed as an orphan.
package steps

import (
	"log/slog"
	"time"

	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/adapterclient"
	"github.com/gpuaas/app-platform/workers/engine"
)

// Pace is how often things are looked at that tell by themselves when they change: a backup.
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
}

// Kinds are the kinds of operation that this build carries out.
func Kinds(config Config) []engine.Kind {
	if config.Pace == (Pace{}) {
		config.Pace = DefaultPace()
	}
	w := &work{Config: config}
	return []engine.Kind{
		w.create(), w.decommission(), w.change(lifecycle.InstanceUpgrade), w.change(lifecycle.InstanceRollback),
		w.add(), w.drain(), w.simple(lifecycle.MemberCordon, cordon), w.simple(lifecycle.MemberUncordon, uncordon), w.simple(lifecycle.MemberLabel, label),
		w.remove(), w.replace(), w.recover(), w.release(),
	}
}

// work holds the steps of all kinds.
type work struct {
	Config
	habits    habits
	crowds    crowds
	manifests manifests
}
