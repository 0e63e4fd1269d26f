package repair

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	rules "github.com/gpuaas/app-platform/domain/repair"
	dbinstance "github.com/gpuaas/app-platform/ent/generated/db/instance"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/health"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// The codes of an instance that is given up.
const (
	graceOver   = "GRACE_OVER"   // it had too few members for longer than its policy's grace
	budgetSpent = "BUDGET_SPENT" // its repairs did not help
)

// unservedSQL are instances with fewer members in service than their manifest demands, and a policy that may end them.
const unservedSQL = `SELECT id FROM instance WHERE status = 'RUNNING' AND unserved_at IS NOT NULL AND repair IS NOT NULL
	AND released_at IS NULL ORDER BY unserved_at, id LIMIT $1`

// GiveUp ends the service of instances that have had too few members for longer than their grace.
func (r *Repairer) GiveUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	found, err := r.DB.Worker().Query(ctx, unservedSQL, maxRepaired)
	if err != nil {
		return fmt.Errorf("list instances without service: %w", err)
	}
	list, err := pgx.CollectRows(found, pgx.RowTo[ids.ID])
	if err != nil {
		return fmt.Errorf("list instances without service: %w", err)
	}
	for _, id := range list {
		if err := r.endUnserved(ctx, id, ""); err != nil {
			return err
		}
	}
	return nil
}

// endUnserved ends an instance that is still without service: because its budget is spent, or else when its grace is
// over.
func (r *Repairer) endUnserved(ctx context.Context, id ids.ID, spent string) error {
	return r.DB.As(ctx, repairer, func(ctx context.Context, t *tx.Tx) error {
		instance, err := t.Instance.Query().Where(dbinstance.ID(id)).ForUpdate().Only(ctx)
		if err != nil {
			return fmt.Errorf("lock instance %s: %w", id, err)
		}
		if instance.Status != lifecycle.InstanceRunning || instance.UnservedAt == nil {
			return nil
		}
		policy, err := rules.Of(instance.Repair)
		if err != nil {
			return err
		}
		why := operation.Failure{Code: budgetSpent, Message: spent, Owner: "platform"}
		if spent == "" {
			if policy.GraceSeconds == nil {
				return nil
			}
			grace := time.Duration(*policy.GraceSeconds) * time.Second
			if t.Now.Sub(*instance.UnservedAt) < grace {
				return nil
			}
			why = operation.Failure{Code: graceOver, Owner: "user",
				Message: fmt.Sprintf("it had too few members in service for %s, the grace of its repair policy", grace)}
		}
		return health.End(ctx, t, instance, why)
	})
}
