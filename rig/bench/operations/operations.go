// Package operations measures how operations are dispatched and carried out: one after the other, by the thousand, by
// several processes, while thousands wait, and beside another tenant's backlog.
package operations

import (
	"context"

	"github.com/gpuaas/app-platform/rig/bench/kit"
)

// bench is one run.
type bench struct{ *kit.Bench }

// Subjects are what this package measures, in order.
var Subjects = []kit.Subject{
	{Name: "dispatch", Measure: on(measureDispatch)},
	{Name: "throughput", Measure: on(measureThroughput)},
	{Name: "workers", Measure: on(measureWorkers)},
	{Name: "memory", Measure: on(measureMemory)},
	{Name: "waiting", Measure: on(measureWaiting)},
	{Name: "fairness", Measure: on(measureFairness)},
	{Name: "bulkheads", Measure: on(measureBulkheads)},
}

// on makes a measurement of this package one of the kit's.
func on(measure func(context.Context, *bench) error) func(context.Context, *kit.Bench) error {
	return func(ctx context.Context, b *kit.Bench) error { return measure(ctx, &bench{b}) }
}
