package meter

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/metering"
	"github.com/gpuaas/app-platform/internal/tx"
)

// source is a source of capacity or of storage that is locked.
type source struct {
	ID string
	// To is until when it is recorded; zero for nothing.
	To    time.Time
	Due   time.Time
	Ended bool
	// Failure is why it could not be recorded; empty when it could.
	Failure string
}

// lockDue locks the sources of a basis that are due, and passes over those that others hold.
func lockDue(ctx context.Context, t *tx.Tx, basis metering.Basis) ([]source, error) {
	found, err := t.Query(ctx, `SELECT source, recorded_to FROM usage_source WHERE basis = $2 AND ended_at IS NULL
		AND due_at <= now()
		ORDER BY due_at, source LIMIT $1 FOR UPDATE SKIP LOCKED`, maxSources, basis)
	if err != nil {
		return nil, fmt.Errorf("lock sources of usage: %w", err)
	}
	return pgx.CollectRows(found, func(row pgx.CollectableRow) (one source, err error) {
		var to *time.Time
		err = row.Scan(&one.ID, &to)
		if to != nil {
			one.To = to.UTC()
		}
		return one, err
	})
}

// store notes how far the sources are recorded and when they are due.
func store(ctx context.Context, t *tx.Tx, sources []source) error {
	ids, dues, tos := make([]string, len(sources)), make([]time.Time, len(sources)), make([]*time.Time, len(sources))
	ended, failures := make([]bool, len(sources)), make([]string, len(sources))
	for i := range sources {
		one := &sources[i]
		ids[i], dues[i], ended[i], failures[i] = one.ID, one.Due, one.Ended, one.Failure
		if !one.To.IsZero() {
			tos[i] = &one.To
		}
	}
	_, err := t.Exec(ctx, `UPDATE usage_source s SET recorded_to = n.at, due_at = n.due, ended_at = CASE
		WHEN n.ended THEN now() END,
			failures = CASE n.failure WHEN '' THEN 0 ELSE s.failures + 1 END, last_error = n.failure
		FROM unnest($1::text[], $2::timestamptz[], $3::timestamptz[], $4::bool[], $5::text[]) n (id, at, due, ended, failure)
		WHERE s.source = n.id`, ids, tos, dues, ended, failures)
	if err != nil {
		return fmt.Errorf("note what is recorded: %w", err)
	}
	return nil
}

// The statements that read what is known of allocations. A proof is read with its gaps in one statement, so that it is
// never newer than they are.
const (
	allocationsSQL = `SELECT a.id, a.tenant_id, a.project_id, CASE WHEN a.shape = $2 THEN 0
		ELSE greatest(a.gpu_count, 1) END,
			o.id IS NOT NULL, o.ended_at, coalesce(o.state = 'FAILED', false)
		FROM allocation a LEFT JOIN operation o ON o.id = a.created_by_operation_id WHERE a.id = ANY ($1)`
	factsSQL = `SELECT allocation_id, at, kind, coalesce(status, ''), coalesce(node_id, ''), coalesce(instance_id, ''),
		coalesce(sku, ''),
			coalesce(region, ''), coalesce(member_id, ''), coalesce(component_key, ''), coalesce(operation_id, ''),
			coalesce(correlation_id, ''),
			coalesce(orphan_id, ''), coalesce(orphan_kind, ''), coalesce(owner, '')
		FROM allocation_fact WHERE allocation_id = ANY ($1) ORDER BY allocation_id, seq`
	proofsSQL = `SELECT a.id, p.proved_at, greatest(g.from_at, 'epoch'), g.to_at, coalesce(g.rebooted, false)
		FROM allocation a JOIN node_proof p ON p.node_id = a.node_id
		LEFT JOIN node_gap g ON g.node_id = a.node_id AND g.to_at >= a.created_at
		WHERE a.id = ANY ($1) ORDER BY a.id, g.from_at`
)

// loadAllocations reads all that is known of allocations.
func loadAllocations(ctx context.Context, t *tx.Tx, wanted []string) (map[string]subject, error) {
	found := make(map[string]*metering.Allocation, len(wanted))
	out := make(map[string]subject, len(wanted))
	for _, id := range wanted {
		found[id] = &metering.Allocation{ID: id}
		out[id] = found[id]
	}
	batch := &pgx.Batch{}
	batch.Queue(allocationsSQL, wanted,
		lifecycle.ShapeBaremetal).Query(func(rows pgx.Rows) error { return scanAllocations(rows, found) })
	batch.Queue(factsSQL, wanted).Query(func(rows pgx.Rows) error { return scanFacts(rows, found) })
	batch.Queue(proofsSQL, wanted).Query(func(rows pgx.Rows) error { return scanProofs(rows, found) })
	if err := t.SendBatch(ctx, batch).Close(); err != nil {
		return nil, fmt.Errorf("read the facts of allocations: %w", err)
	}
	return out, nil
}

func scanAllocations(rows pgx.Rows, found map[string]*metering.Allocation) error {
	var id, tenant, project string
	var gpus int
	var made, failed bool
	var ended *time.Time
	_, err := pgx.ForEachRow(rows, []any{&id, &tenant, &project, &gpus, &made, &ended, &failed}, func() error {
		one := found[id]
		one.TenantID, one.ProjectID, one.GPUs = tenant, project, gpus
		if made {
			one.Maker = &metering.Maker{Failed: failed}
			if ended != nil {
				one.Maker.EndedAt = *ended
			}
		}
		return nil
	})
	return err
}

func scanFacts(rows pgx.Rows, found map[string]*metering.Allocation) error {
	var id string
	var f metering.Fact
	_, err := pgx.ForEachRow(rows, []any{&id, &f.At, &f.Kind, &f.Status, &f.NodeID, &f.InstanceID, &f.SKU, &f.Region,
		&f.MemberID,
		&f.ComponentKey, &f.OperationID, &f.CorrelationID, &f.OrphanID, &f.OrphanKind, &f.Owner}, func() error {
		found[id].Facts = append(found[id].Facts, f)
		return nil
	})
	return err
}

func scanProofs(rows pgx.Rows, found map[string]*metering.Allocation) error {
	var id string
	var at time.Time
	var from, to *time.Time
	var rebooted bool
	_, err := pgx.ForEachRow(rows, []any{&id, &at, &from, &to, &rebooted}, func() error {
		found[id].Proof.At = at
		if to != nil {
			found[id].Proof.Gaps = append(found[id].Proof.Gaps, metering.Gap{From: *from, To: *to, Rebooted: rebooted})
		}
		return nil
	})
	return err
}
