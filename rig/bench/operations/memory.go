package operations

import (
	"context"
	"fmt"
	"time"

	"github.com/gpuaas/app-platform/rig/bench/kit"
)

// The bars of a worker's memory at the end of a long run beside its beginning: a tenth more, and a few
// megabytes for what is kept a bounded number of.
const (
	memoryBar   = 1.1
	memorySlack = 8 << 20
)

// held is a worker's memory, in bytes.
type held struct{ heap, resident uint64 }

// measureMemory carries one long backlog out and looks at the worker's memory at a tenth, at half and at
// the end of it.
func measureMemory(ctx context.Context, b *bench, m machine) error {
	n := b.Plan.Long
	if err := b.backlog(ctx, n); err != nil {
		return err
	}
	var seen []held
	for _, ended := range []int{n / 10, n / 2, n} {
		if err := b.down(ctx, n-ended); err != nil {
			return err
		}
		var now held
		if err := m.server.Ask("memory", nil, &now.heap); err != nil {
			return err
		}
		if err := m.server.Ask("resident", nil, &now.resident); err != nil {
			return err
		}
		b.Log.Info("memory", "operations", ended, "heap", now.heap, "resident", now.resident)
		seen = append(seen, now)
	}
	for _, one := range []struct {
		name string
		of   func(held) uint64
	}{{"heap and stacks", func(h held) uint64 { return h.heap }},
		{"resident memory", func(h held) uint64 { return h.resident }}} {
		first, last := one.of(seen[0]), one.of(seen[2])
		b.Sheet.Within(fmt.Sprintf("a worker's %s after %d, %d and %d operations", one.name, n/10, n/2, n),
			fmt.Sprintf("%s, %s, %s", kit.Mib(first), kit.Mib(one.of(seen[1])), kit.Mib(last)),
			fmt.Sprintf("≤ %.1f × + %s", memoryBar, kit.Mib(memorySlack)),
			float64(last) <= memoryBar*float64(first)+memorySlack)
	}
	return nil
}

// down waits until no more than so many operations are open.
func (b *bench) down(ctx context.Context, most int) error {
	look := time.NewTicker(500 * time.Millisecond)
	defer look.Stop()
	last, moved := -1, time.Now()
	for {
		open, err := b.Set.Open(ctx)
		if err != nil || open <= most {
			return err
		}
		if open != last {
			last, moved = open, time.Now()
		}
		if time.Since(moved) > endsIn {
			return fmt.Errorf("%d operations have been open for %s", open, endsIn)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-look.C:
		}
	}
}
