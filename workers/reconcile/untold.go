package reconcile

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
	dbinstance "github.com/gpuaas/app-platform/ent/generated/db/instance"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

const (
	// untoldEvery is the slowest pace of progress: what is told here was to wait as long at most.
	untoldEvery = time.Second
	// maxUntold bounds a look; the rest is told by the next.
	maxUntold = 200
)

// untoldSQL is by an index of what it looks for, and costs nothing while there is none.
const untoldSQL = `SELECT o.id, o.instance_id FROM operation o JOIN instance i ON i.id = o.instance_id
	WHERE o.untold AND o.ended_at IS NULL AND i.updated_at < now() - interval '1 second' ORDER BY o.id LIMIT $1`

// untold tells timelines what operations show since their instances are quiet: it had followed an event within its pace.
func (r *Reconciler) untold(ctx context.Context) error {
	type held struct{ ID, Instance ids.ID }
	found, err := r.DB.Worker().Query(ctx, untoldSQL, maxUntold)
	if err != nil {
		return fmt.Errorf("look for lines that were not told: %w", err)
	}
	list, err := pgx.CollectRows(found, pgx.RowToStructByPos[held])
	if err != nil {
		return fmt.Errorf("look for lines that were not told: %w", err)
	}
	for _, one := range list {
		err := r.DB.As(ctx, r.actor, func(ctx context.Context, t *tx.Tx) error {
			instance, err := t.Instance.Query().Where(dbinstance.ID(one.Instance)).ForUpdate().Only(ctx)
			if err != nil {
				return fmt.Errorf("lock %s: %w", one.Instance, err)
			}
			return operation.TellLast(ctx, t, instance, one.ID)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
