package event

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
)

// AppendShared is Append for a caller at either end of a share of the instance. A caller of the attached project may
// not write the timeline of another project, so the database does it, for the events that a share may have: those of
// control planes, and actions. OperationID and MemberID of the draft are left out.
func AppendShared(ctx context.Context, t *tx.Tx, shareID ids.ID, instance *db.Instance, draft Draft) error {
	payload := draft.Payload
	if payload == nil {
		payload = map[string]any{}
	}
	encoded, err := json.Marshal(payload)
	if err != nil {
		return fmt.Errorf("encode an event: %w", err)
	}
	correlation := draft.CorrelationID
	if correlation == "" {
		correlation = instance.CorrelationID
	}
	var revision *int
	err = t.QueryRow(ctx, `SELECT platform.tell_shared($1, $2, $3, $4, $5, $6, $7)`, shareID, ids.New(ids.Event),
		string(draft.Type),
		draft.Message, encoded, correlation, t.Now).Scan(&revision)
	if err != nil {
		return fmt.Errorf("append to %s the event of its share %s: %w", instance.ID, shareID, err)
	}
	if revision == nil {
		return fmt.Errorf("append to %s the event of its share %s: the caller does not reach the share", instance.ID,
			shareID)
	}
	instance.Revision, instance.UpdatedAt = *revision, t.Now
	t.Wake(InstanceTopic(instance.ID), ProjectTopic(instance.ProjectID))
	return nil
}
