package meter

import (
	"context"
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

// capacityTurn records the capacity of as many allocations as one transaction may hold, and reports whether more are
// due.
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

// due is when an allocation is looked at again: at once when there is more of it, else after the end of the present
// slice. What happens to it makes it due earlier.
func due(a *metering.Allocation, written int, now time.Time) time.Time {
	switch {
	case written >= maxSlices:
		return now
	case now.Sub(a.Proof.At) > longSilent:
		return now.Add(silentAgain)
	}
	return now.Truncate(metering.Slice).Add(metering.Slice + nextSlice)
}

// record writes what is known of the allocations, and how far that goes. One whose facts have changed after they were
// recorded stays where it is until people mend them; its source says so, and it holds no other back.
func (m *Meter) record(ctx context.Context, t *tx.Tx, sources []source, found map[string]*metering.Allocation) error {
	var records []metering.Record
	reached := make([]metering.Metered, len(sources))
	for i := range sources {
		reached[i] = found[sources[i].ID].Meter(sources[i].To, t.Now, maxSlices)
		records = append(records, reached[i].Records...)
	}
	added, err := usage.Add(ctx, t, records)
	if err != nil {
		return err
	}
	changed := make(map[string]string)
	for _, n := range added.Reused {
		changed[records[n].Source] = records[n].UsageID + " is recorded with other content: its facts have changed since"
	}
	for i := range sources {
		one := &sources[i]
		if one.Failure = changed[one.ID]; one.Failure != "" {
			m.Log.Warn("the capacity of an allocation cannot be recorded", "allocation_id", one.ID, "why", one.Failure)
			one.Due = t.Now.Add(silentAgain)
			continue
		}
		one.To, one.Ended = reached[i].To, reached[i].Ended
		one.Due = due(found[one.ID], len(reached[i].Records), t.Now)
	}
	m.Stats.Capacity.Add(int64(added.Recorded))
	return store(ctx, t, sources)
}
