package event

import (
	"encoding/json"
	"fmt"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
)

// insertFree is insert for an allocation: its number follows the greatest, which is safe as the caller has locked the
// allocation's row.
const insertFree = `INSERT INTO app_instance_event (id, tenant_id, project_id, allocation_id, seq, type, app_slug,
	permission_family,
	operation_id, message, payload, correlation_id, trace_id, occurred_at, xid)
	SELECT $1, $2, $3, $4, coalesce(max(before.seq), 0) + 1, $5, '', '` + authz.AllocationFamily +
	`', nullif($6, ''), $7, $8, $9, $10, $11,
	GREATEST(pg_current_xact_id()::text::bigint, max(before.xid) FILTER (WHERE before.generation = platform.generation()))
	FROM app_instance_event before WHERE before.allocation_id = $4`

// AppendFree writes what happens to an allocation that no instance uses to its project's feed, in order, and wakes its
// readers after the commit. The caller has locked the allocation's row, or has just created it.
func AppendFree(t *tx.Tx, allocation *db.Allocation, drafts ...Draft) error {
	for _, draft := range drafts {
		payload := map[string]any{"allocation": allocation.ID}
		for key, value := range draft.Payload {
			payload[key] = value
		}
		encoded, err := json.Marshal(payload)
		if err != nil {
			return fmt.Errorf("encode an event: %w", err)
		}
		correlation := draft.CorrelationID
		if correlation == "" {
			correlation = t.Request.CorrelationID
		}
		t.Last().Queue(insertFree, ids.New(ids.Event), allocation.TenantID, allocation.ProjectID, allocation.ID,
			string(draft.Type),
			draft.OperationID, draft.Message, encoded, correlation, t.Request.TraceID, t.Now)
	}
	t.Wake(ProjectTopic(allocation.ProjectID))
	return nil
}
