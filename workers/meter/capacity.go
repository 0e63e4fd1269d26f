package meter

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/gpuaas/app-platform/domain/metering"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/usage"
)

// Bounds of metering capacity and storage.
const (
	maxSources  = 100 // of one transaction
	maxSlices   = 240 // of one source in it
	maxTurns    = 50  // transactions of one look
	longSilent  = 15 * time.Minute
	silentAgain = 5 * time.Minute // a node that has been silent for longSilent
	nextSlice   = 6 * time.Second // after a slice's end, when a heartbeat has come since
)

// subject is what the platform meters itself: a function of facts, which gives every caller the same records.
type subject interface {
	// Meter returns the records from a time on, of at most as many slices as the bound.
	Meter(from, now time.Time, bound int) metering.Metered
}

// own is one of the platform's own meters.
type own struct {
	basis metering.Basis
	// of is what a source of it is called in the log.
	of   string
	load func(ctx context.Context, t *tx.Tx, wanted []string) (map[string]subject, error)
	// due is when a source is read again once everything that is known of it is recorded. An event of the source makes
	// it due earlier.
	due func(one subject, now time.Time) time.Time
	// recorded is where its new records are counted.
	recorded func(*Stats) *atomic.Int64
}

var (
	capacity = own{metering.Capacity, "an allocation", loadAllocations, dueAllocation,
		func(s *Stats) *atomic.Int64 { return &s.Capacity }}
	storage = own{metering.Storage, "a volume", loadVolumes, dueVolume,
		func(s *Stats) *atomic.Int64 { return &s.Storage }}
)

// Capacity records what is proved of every allocation that is due, until none is or its bound is reached.
func (m *Meter) Capacity(ctx context.Context) error { return m.own(ctx, &capacity) }

// Storage records the size of every volume that is due, until none is or its bound is reached.
func (m *Meter) Storage(ctx context.Context) error { return m.own(ctx, &storage) }

func (m *Meter) own(ctx context.Context, kind *own) error {
	for range maxTurns {
		more, err := m.turn(ctx, kind)
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// turn records as many sources as one transaction may hold, and reports whether more are due.
func (m *Meter) turn(ctx context.Context, kind *own) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, jobTimeout)
	defer cancel()
	err = m.DB.As(ctx, m.actor, func(ctx context.Context, t *tx.Tx) error {
		sources, err := lockDue(ctx, t, kind.basis)
		if err != nil || len(sources) == 0 {
			return err
		}
		more = len(sources) == maxSources
		wanted := make([]string, len(sources))
		for i := range sources {
			wanted[i] = sources[i].ID
		}
		found, err := kind.load(ctx, t, wanted)
		if err != nil {
			return err
		}
		return m.record(ctx, t, kind, sources, found)
	})
	return more && err == nil, err
}

// dueAllocation is after the end of the present slice, and later where its node is silent.
func dueAllocation(one subject, now time.Time) time.Time {
	if a, is := one.(*metering.Allocation); is && now.Sub(a.Proof.At) > longSilent {
		return now.Add(silentAgain)
	}
	return now.Truncate(metering.Slice).Add(metering.Slice + nextSlice)
}

// dueVolume is after the end of the present slice.
func dueVolume(_ subject, now time.Time) time.Time {
	return now.Truncate(metering.VolumeSlice).Add(metering.VolumeSlice + nextSlice)
}

// record writes what is known of the sources, and how far that goes. One whose facts have changed after they were
// recorded stays where it is until an operator mends them; its row states the reason, and it delays no other source.
func (m *Meter) record(ctx context.Context, t *tx.Tx, kind *own, sources []source, found map[string]subject) error {
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
		changed[records[n].Source] = records[n].UsageID +
			" is recorded with other content: its facts have changed since"
	}
	for i := range sources {
		one := &sources[i]
		if one.Failure = changed[one.ID]; one.Failure != "" {
			m.Log.Warn("the usage of "+kind.of+" cannot be recorded", "source", one.ID, "why", one.Failure)
			one.Due = t.Now.Add(silentAgain)
			continue
		}
		one.To, one.Ended = reached[i].To, reached[i].Ended
		one.Due = t.Now // there is more of it
		if len(reached[i].Records) < maxSlices {
			one.Due = kind.due(found[one.ID], t.Now)
		}
	}
	kind.recorded(m.Stats).Add(int64(added.Recorded))
	return store(ctx, t, sources)
}
