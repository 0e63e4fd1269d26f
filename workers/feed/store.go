package feed

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/service/ledger/queue"
)

// together is how many statuses are stored in one transaction at most: one commit serves all of them,
// and none of their instances stays locked for long.
const together = 32

// absorb stores a page. Statuses that speak of nothing but their operation are stored many at a time,
// in the order of locks; the others, and all of a group that could not be stored, one by one.
func (r *Reader) absorb(ctx context.Context, s *source, page []adapter.Status) error {
	var plain []adapter.Status
	for _, status := range newest(page) {
		if len(status.Members) == 0 {
			plain = append(plain, status)
			continue
		}
		if err := r.absorbEach(ctx, s, status); err != nil {
			return err
		}
	}
	for group := range slices.Chunk(plain, together) {
		err := r.store(ctx, s, group)
		if err == nil {
			continue
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		r.log.Warn("adapters' statuses could not be stored together", "adapter", s.Name, "statuses", len(group),
			"error", err)
		if err := r.absorbEach(ctx, s, group...); err != nil {
			return err
		}
	}
	return nil
}

// absorbEach stores statuses by themselves. One that cannot be stored is left to its operation, which
// asks by itself.
func (r *Reader) absorbEach(ctx context.Context, s *source, statuses ...adapter.Status) error {
	for i, status := range statuses {
		if err := r.store(ctx, s, statuses[i:i+1]); err != nil {
			if ctx.Err() != nil {
				return err
			}
			r.log.Error("an adapter's status could not be stored; the operation polls for it", "adapter", s.Name,
				"operation_id", status.OperationID, "error", err)
		}
	}
	return nil
}

// newest leaves out what is not a status of an operation, and all but the last one of each.
func newest(page []adapter.Status) []adapter.Status {
	last := make(map[string]int, len(page))
	for i, status := range page {
		last[status.OperationID] = i
	}
	var kept []adapter.Status
	for i, status := range page {
		if last[status.OperationID] == i && ids.ID(status.OperationID).Is(ids.Operation) && status.State.Valid() {
			kept = append(kept, status)
		}
	}
	return kept
}

// store takes statuses in, whichever worker holds their operations, and makes due those that have ended. An
// operation of another adapter, or one that has ended, is left alone.
func (r *Reader) store(ctx context.Context, s *source, statuses []adapter.Status) error {
	ctx, cancel := context.WithTimeout(ctx, storeWithin)
	defer cancel()
	l := &locked{}
	return r.db.AsPipelined(ctx, r.actor, func(batch *pgx.Batch) { l.queue(batch, s.Name, statuses) },
		func(ctx context.Context, t *tx.Tx, writes *pgx.Batch) error {
			due := false
			for _, status := range statuses {
				op := l.operations[ids.ID(status.OperationID)]
				if op == nil {
					continue
				}
				ended, err := l.absorb(ctx, t, writes, op, status, r.worker)
				if err != nil {
					return err
				}
				due = due || (ended && op.ClaimedBy == nil)
			}
			if due {
				t.Wake(event.QueueTopic)
			}
			if !l.told {
				// What a crash of the database forgets is read again, since the cursor is stored after it. An event
				// that a client has seen must stay.
				writes.Queue(tx.NotAwaited)
			}
			return nil
		})
}

// locked are open operations of an adapter, with their instances.
type locked struct {
	instances  map[ids.ID]*db.Instance
	operations map[ids.ID]*db.Operation
	told       bool // the timeline of one
}

// queue queues what locks them: all instances first, then the operations, each by id.
func (l *locked) queue(batch *pgx.Batch, name string, statuses []adapter.Status) {
	*l = locked{instances: make(map[ids.ID]*db.Instance), operations: make(map[ids.ID]*db.Operation)}
	wanted := make([]string, len(statuses))
	for i, status := range statuses {
		wanted[i] = status.OperationID
	}
	// PostgreSQL assumes ten elements for a list of unknown length, and would plan again each time for the
	// length that mostly comes, which costs more than the locks.
	batch.Queue(`SELECT set_config('plan_cache_mode', 'force_generic_plan', true)`)
	batch.Queue(`SELECT `+rows.InstanceColumns+` FROM instance WHERE id IN (SELECT instance_id FROM operation
		WHERE `+queue.OfAdapter+`)
		ORDER BY id FOR UPDATE`, wanted, name).
		Query(func(found pgx.Rows) error {
			list, err := pgx.CollectRows(found, rows.Instance)
			for _, one := range list {
				l.instances[one.ID] = one
			}
			return err
		})
	queue.Open(batch, wanted, name, func(one *db.Operation) { l.operations[one.ID] = one })
}

func (l *locked) absorb(ctx context.Context, t *tx.Tx, writes *pgx.Batch, op *db.Operation,
	status adapter.Status, here ids.ID) (bool, error) {
	var instance *db.Instance
	if op.InstanceID != nil {
		instance = l.instances[*op.InstanceID]
	}
	if len(status.Members) > 0 {
		l.told = true // or may be
		return operation.Absorb(ctx, t, instance, op, status)
	}
	ended, told, err := operation.QueueAbsorb(writes, t, instance, op, status, here)
	if err != nil || len(told) == 0 {
		return ended, err
	}
	l.told = true
	return ended, event.Enqueue(writes, t, instance, told...)
}

// wokenPerSecond spreads the operations that poll again when an adapter is back: each reads its status
// from it.
const wokenPerSecond = "200.0"

// wake makes the adapter's operations due: all that were dispatched, or those whose last try failed. Few
// are due at once; many, one after the other.
func (r *Reader) wake(ctx context.Context, s *source, all bool) error {
	_, err := r.db.Worker().Exec(ctx, `WITH woken AS MATERIALIZED (
			SELECT id FROM operation WHERE adapter_name = $1 AND ended_at IS NULL AND next_run_at > now()
				AND (failures > 0 OR ($2 AND dispatch_attempt > 0)) ORDER BY id FOR UPDATE
		), spread AS (SELECT id, now() + interval '1 second' * floor((row_number() OVER (ORDER BY id) - 1) /
		`+wokenPerSecond+`) AS at FROM woken)
		UPDATE operation SET next_run_at = LEAST(next_run_at, spread.at) FROM spread
		WHERE operation.id = spread.id`, s.Name, all)
	if err != nil {
		return fmt.Errorf("wake the adapter's operations: %w", err)
	}
	r.db.Wake(event.QueueTopic)
	return nil
}
