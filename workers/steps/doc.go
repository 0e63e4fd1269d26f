// Package steps holds what each kind of operation does, one kind in each file. The steps that kinds share are in
// package parts.
//
// The adapter's report moves an operation along; it never ends one with success by itself where the agents
// can know better. Members join, and versions change, only when the manifest's readiness probes, run by
// the agents after this dispatch, have passed; members leave only when the agents found nothing left. A
// drain is the one thing that the adapter alone can know, and silence about a member is never read as
// yes. Where the caller chose force, the outcome says what is not proved, and that is listed as an orphan.
package steps

import (
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/workers/bulkhead"
	"github.com/gpuaas/app-platform/workers/engine"
	"github.com/gpuaas/app-platform/workers/parts"
)

// Kinds are the kinds of operation that this build carries out.
func Kinds(config parts.Config) []engine.Kind {
	if config.Pace == (parts.Pace{}) {
		config.Pace = parts.DefaultPace()
	}
	if config.Breakers == nil {
		config.Breakers = &bulkhead.Breakers{}
	}
	w := &work{&parts.Work{Config: config}}
	return []engine.Kind{
		w.create(), w.decommission(), w.change(lifecycle.InstanceUpgrade), w.change(lifecycle.InstanceRollback),
		w.add(), w.drain(), w.simple(lifecycle.MemberCordon, cordon), w.simple(lifecycle.MemberUncordon, uncordon),
		w.simple(lifecycle.MemberLabel, label),
		w.remove(), w.replace(), w.recover(), w.release(),
	}
}

// work adds the steps of single kinds to those that kinds share.
type work struct{ *parts.Work }
