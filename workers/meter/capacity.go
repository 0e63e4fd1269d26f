package meter

import (
	"context"
	"fmt"
	"time"

	"github.com/gpuaas/app-platform/domain/metering"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/usage"
)

// Bounds of metering capacity.
const (
	maxAllocations = 100 // of one transaction
	maxSlices      = 240 // of one allocation in it
	maxTurns       = 50  // transactions of one look
	longSilent     = 15 * time.Minute
	silentAgain    = 5 * time.Minute // a node that has been silent for longSilent
	nextSlice      = 6 * time.Second // after a slice's end, when a heartbeat has come since
)

// Capacity records what is proved of every allocation that is due, until none is or its bound is reached.
func (m *Meter) Capacity(ctx context.Context) error {
	for range maxTurns {
		more, err := m.capacityTurn(ctx)
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// capacityTurn records the capacity of as many allocations as one transaction may hold, and reports whether more are due.
func (m *Meter) capacityTurn(ctx context.Context) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, jobTimeout)
	defer cancel()
	err = m.DB.As(ctx, m.actor, func(ctx context.Context, t *tx.Tx) error {
		sources, err := lockDue(ctx, t)
		if err != nil || len(sources) == 0 {
			return err
		}
		more = len(sources) == maxAllocations
		found, err := load(ctx, t, sources)
		if err != nil {
			return err
		}
		return m.record(ctx, t, sources, found)
	})
	return more && err == nil, err
}

// due is when an allocation is looked at again: at once when there is more of it, else after the end of the present slice.
// What happens to it makes it due earlier.
func due(a *metering.Allocation, written int, now time.Time) time.Time {
	switch {
	case written >= maxSlices:
		return now
	case now.Sub(a.Proof.At) > longSilent:
		return now.Add(silentAgain)
	}
	return now.Truncate(metering.Slice).Add(metering.Slice + nextSlice)
}

// record writes what is known of the allocations, and how far that goes.
func (m *Meter) record(ctx context.Context, t *tx.Tx, sources []source, found map[string]*metering.Allocation) error {
	var records []metering.Record
	for i := range sources {
		one := &sources[i]
		metered := found[one.ID].Meter(one.To, t.Now, maxSlices)
		records = append(records, metered.Records...)
		one.To, one.Ended = metered.To, metered.Ended
		one.Due = due(found[one.ID], len(metered.Records), t.Now)
	}
	added, err := usage.Add(ctx, t, records)
	if err != nil {
		return err
	}
	if len(added.Reused) > 0 {
		return fmt.Errorf("%s of %s is recorded with other content: its facts have changed after it was recorded",
			records[added.Reused[0]].UsageID, records[added.Reused[0]].Source)
	}
	if err := store(ctx, t, sources); err != nil {
		return err
	}
	m.Stats.Capacity.Add(int64(added.Recorded))
	return nil
}
