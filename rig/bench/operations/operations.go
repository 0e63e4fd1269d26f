// Package operations measures how operations are dispatched and carried out: one after the other, by the thousand, by
// several processes, while thousands wait, and beside another tenant's backlog.
package operations

import (
	"context"

	"github.com/gpuaas/app-platform/rig/bench/kit"
	"github.com/gpuaas/app-platform/rig/bench/platform"
	"github.com/gpuaas/app-platform/rig/bench/process"
)

// bench is one run.
type bench struct{ *kit.Bench }

// Subjects are what this package measures, in order.
var Subjects = []kit.Subject{
	{Name: "dispatch", Measure: on(measureDispatch)},
	{Name: "throughput", Measure: on(measureThroughput)},
	{Name: "workers", Measure: on(measureWorkers)},
	{Name: "memory", Measure: on(working(measureMemory))},
	{Name: "waiting", Measure: on(working(measureWaiting))},
	{Name: "fairness", Measure: on(working(measureFairness))},
	{Name: "bulkheads", Measure: on(working(measureBulkheads))},
}

// on makes a measurement of this package one of the kit's.
func on(measure func(context.Context, *bench) error) func(context.Context, *kit.Bench) error {
	return func(ctx context.Context, b *kit.Bench) error { return measure(ctx, &bench{b}) }
}

// machine is what an installation's operations need: an adapter that does nothing, and a server with its workers.
type machine struct {
	adapter *process.Child
	server  *kit.Server
}

// working returns a measurement with a machine of its own, which has carried out a few operations. The
// measurement fails when any operation does.
func working(measure func(context.Context, *bench, machine) error) func(context.Context, *bench) error {
	return func(ctx context.Context, b *bench) error {
		adapter, err := b.noop(ctx)
		if err != nil {
			return err
		}
		defer adapter.Stop()
		server, err := b.Serve(ctx, platform.Role, true)
		if err != nil {
			return err
		}
		defer server.Stop()
		if err := b.settle(ctx, func() error { return b.backlog(ctx, warmUp) }); err != nil {
			return err
		}
		if err := measure(ctx, b, machine{adapter, server}); err != nil {
			return err
		}
		return b.Set.Failed(ctx)
	}
}
