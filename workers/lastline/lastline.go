// Package lastline appends to timelines the last line that an operation shows before it is quiet. A line that follows
// an event within its pace is on the operation alone, since the instance's row is hot: without a next one, it would
// never reach the timeline.
package lastline

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	dbinstance "github.com/gpuaas/app-platform/ent/generated/db/instance"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// Every is how often Tell is to be called: the slowest pace of progress.
const Every = time.Second

// maxLines bounds one call of Tell; the next call appends the rest.
const maxLines = 200

// untoldSQL has an index of its own, which costs nothing while no line is missing.
const untoldSQL = `SELECT o.id, o.instance_id FROM operation o JOIN instance i ON i.id = o.instance_id
	WHERE o.untold AND o.ended_at IS NULL AND i.updated_at < now() - interval '1 second' ORDER BY o.id LIMIT $1`

// held is an operation whose last line is not on the timeline.
type held struct{ ID, Instance ids.ID }

// Tell appends to timelines the lines that are only on operations, of instances that were quiet for a second.
func Tell(ctx context.Context, database *tx.DB) error {
	found, err := database.Worker().Query(ctx, untoldSQL, maxLines)
	if err != nil {
		return fmt.Errorf("find operations whose last line is not on the timeline: %w", err)
	}
	list, err := pgx.CollectRows(found, pgx.RowToStructByPos[held])
	if err != nil {
		return fmt.Errorf("find operations whose last line is not on the timeline: %w", err)
	}
	for _, one := range list {
		err := database.As(ctx, authz.System("reconciler"), func(ctx context.Context, t *tx.Tx) error {
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
