package operation

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
)

// limitWindow is what operations are counted over.
const limitWindow = time.Hour

// withinLimit refuses one operation more than the caller's limit allows in an hour. Calls of one account are counted
// one after the other; those without a limit are not counted. Ids sort by when they were minted, so that the index of a
// project's operations finds those of the last hour.
func withinLimit(ctx context.Context, t *tx.Tx, project ids.ID) error {
	most := t.Actor.Limits.OperationsPerHour
	if most == 0 {
		return nil
	}
	var begun int
	var oldest *time.Time
	batch := &pgx.Batch{}
	batch.Queue(`SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`, "operations of "+string(t.Actor.ID))
	batch.Queue(`SELECT count(*), min(created_at) FROM operation WHERE project_id = $1 AND id > $2 AND requester_id = $3
		AND created_at > $4`,
		project, ids.Before(ids.Operation, t.Now.Add(-limitWindow-time.Minute)), t.Actor.ID, t.Now.Add(-limitWindow)).
		QueryRow(func(row pgx.Row) error { return row.Scan(&begun, &oldest) })
	if err := t.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("count the operations of %s: %w", t.Actor.ID, err)
	}
	if begun < most {
		return nil
	}
	again := oldest.Add(limitWindow)
	refused := fault.New(fault.RateLimited,
		"the service account may begin %d operations an hour, and has done so: try again at %s",
		most, again.UTC().Format(time.RFC3339)).
		With(fault.Reason{Code: fault.AccountLimit,
			Message: fmt.Sprintf("operationsPerHour is %d; try again in %d seconds",
				most, int(again.Sub(t.Now).Seconds())+1)})
	t.Deny(tx.Denial{Actor: t.Actor, Request: t.Request, Action: "beginOperation", Code: string(fault.RateLimited),
		ObjectID: string(t.Actor.ID), TenantID: t.Actor.TenantID, Project: project, At: t.Now})
	return refused
}
