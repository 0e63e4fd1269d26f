package volume

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/volume"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/ledger/audit"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

const deleteAction = "deleteVolume"

// Delete deletes a volume with its files. It is DELETING until a node has proved that nothing is left of it, and
// DELETED at once where no node ever had it. One that is DELETING or DELETED is returned as it is. Key: volume.delete
// on the project. Faults: INVALID_ARGUMENT, NOT_FOUND, FORBIDDEN, CONFLICT naming the instances that use it.
func (s *Service) Delete(ctx context.Context, id ids.ID, reason string) (out *Volume, err error) {
	wrong := &check.Input{}
	wrong.Text("reason", reason, 1, check.MaxReason)
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		before, err := locked(ctx, t, deleteAction, authz.VolumeDelete, id)
		if err != nil {
			return err
		}
		out = before
		if before.Status != volume.Ready {
			return nil
		}
		if err := unused(ctx, t, id); err != nil {
			return err
		}
		if out, err = end(ctx, t, before); err != nil {
			return err
		}
		return audit.Write(ctx, t, audit.Entry{Action: deleteAction, Key: authz.VolumeDelete, ObjectID: id,
			Object: before.object(), Reason: reason, Before: shown(before), After: shown(out)})
	})
	return out, err
}

// end marks the volume DELETING or DELETED, and wakes the node that is to delete its files.
func end(ctx context.Context, t *tx.Tx, before *Volume) (*Volume, error) {
	after := *before
	var deleter *ids.ID
	err := t.QueryRow(ctx, `UPDATE volume v SET updated_at = $2::timestamptz, correlation_id = $3, trace_id = $4,
			status = CASE WHEN platform.volume_nodes(v) = '{}' THEN 'DELETED' ELSE 'DELETING' END,
			deleted_at = CASE WHEN platform.volume_nodes(v) = '{}' THEN $2::timestamptz END
		WHERE v.id = $1 RETURNING v.status, v.deleted_at, platform.volume_deleter(v)`, before.ID, t.Now,
		t.Request.CorrelationID, t.Request.TraceID).Scan((*string)(&after.Status), &after.DeletedAt, &deleter)
	if err != nil {
		return nil, fmt.Errorf("delete volume %s: %w", before.ID, err)
	}
	t.Wake(event.ProjectTopic(before.ProjectID))
	if deleter != nil && after.Status == volume.Deleting {
		t.Wake(event.NodeTopic(*deleter))
	}
	return &after, nil
}
