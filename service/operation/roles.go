package operation

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/tx"
)

// role is the stored form of a component's read model on the instance's row.
type role struct {
	ComponentKey string `json:"componentKey"`
	DisplayName  string `json:"displayName"`
	Desired      int    `json:"desired"`
	Current      int    `json:"current"`
	Healthy      int    `json:"healthy"`
	Summary      string `json:"summary"`
}

// seen is how many members of a component stand where.
type seen struct {
	Key    string
	Status lifecycle.MemberStatus
	Health lifecycle.Health
	Count  int
}

// RecountRoles keeps the instance's read model of its components: whoever changes the status or the
// health of members calls it in the same transaction, holding the instance's row.
func RecountRoles(ctx context.Context, t *tx.Tx, instanceID ids.ID) error {
	reads, writes := &pgx.Batch{}, &pgx.Batch{}
	recount := QueueRecount(reads, instanceID)
	if err := t.SendBatch(ctx, reads).Close(); err != nil {
		return fmt.Errorf("count the members of %s: %w", instanceID, err)
	}
	if err := recount.Queue(writes); err != nil {
		return err
	}
	if err := t.SendBatch(ctx, writes).Close(); err != nil {
		return fmt.Errorf("keep the roles of %s: %w", instanceID, err)
	}
	return nil
}

// Recount is RecountRoles for a transaction that sends its statements together: QueueRecount's reads go
// after the last change of members, and what Queue writes goes out later.
type Recount struct {
	instanceID ids.ID
	stored     []byte
	counts     []seen
}

// QueueRecount queues the reads.
func QueueRecount(batch *pgx.Batch, instanceID ids.ID) *Recount {
	r := &Recount{instanceID: instanceID}
	batch.Queue(`SELECT coalesce(roles, '[]') FROM instance WHERE id = $1`, instanceID).
		QueryRow(func(row pgx.Row) error { return row.Scan(&r.stored) })
	batch.Queue(`SELECT component_key, status, health, count(*) FROM member WHERE instance_id = $1 GROUP BY 1, 2, 3`, instanceID).
		Query(func(found pgx.Rows) (err error) {
			r.counts, err = pgx.CollectRows(found, pgx.RowToStructByPos[seen])
			return err
		})
	return r
}

// Queue queues the write of what the reads came to.
func (r *Recount) Queue(batch *pgx.Batch) error {
	var roles []role
	if err := json.Unmarshal(r.stored, &roles); err != nil {
		return fmt.Errorf("read the roles of %s: %w", r.instanceID, err)
	}
	for i := range roles {
		roles[i].recount(r.counts)
	}
	encoded, err := json.Marshal(roles)
	if err != nil {
		return fmt.Errorf("encode the roles of %s: %w", r.instanceID, err)
	}
	batch.Queue(`UPDATE instance SET roles = $2 WHERE id = $1`, r.instanceID, encoded)
	return nil
}

// recount counts the members that take part: those that have joined and are not on their way out.
func (r *role) recount(counts []seen) {
	r.Current, r.Healthy = 0, 0
	failed := 0
	for _, one := range counts {
		if one.Key != r.ComponentKey {
			continue
		}
		switch one.Status {
		case lifecycle.MemberActive, lifecycle.MemberDraining, lifecycle.MemberDrained:
			r.Current += one.Count
			if one.Health == lifecycle.HealthHealthy {
				r.Healthy += one.Count
			}
		case lifecycle.MemberFailed:
			failed += one.Count
		}
	}
	r.Summary = fmt.Sprintf("%d of %d active", r.Current, r.Desired)
	if failed > 0 {
		r.Summary += fmt.Sprintf(", %d failed", failed)
	}
}
