package volume

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/volume"
	dbproject "github.com/gpuaas/app-platform/ent/generated/db/project"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/capacity"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/kit/overlay"
	"github.com/gpuaas/app-platform/service/ledger/audit"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

// ResizeInput is the size that a volume grows to.
type ResizeInput struct {
	VolumeID ids.ID
	SizeGiB  int
	Reason   string
}

const resizeAction = "resizeVolume"

// Resize makes a volume larger; the nodes that have it extend it while it is in use. A resize to its present size
// changes nothing. Key: volume.update on the project.
//
// Faults: INVALID_ARGUMENT naming the field, NOT_FOUND, FORBIDDEN, FAILED_PRECONDITION at input.sizeGiB when it would
// shrink and at input.volumeId when it is being deleted, LIMIT_EXCEEDED, POLICY_DENIED and
// BUDGET_EXCEEDED at input.sizeGiB.
func (s *Service) Resize(ctx context.Context, in ResizeInput) (out *Volume, err error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		out, err = in.resize(ctx, t)
		return err
	})
	return out, err
}

func (in *ResizeInput) check() error {
	wrong := &check.Input{}
	checkSize(wrong, in.SizeGiB)
	wrong.Reason("input.reason", in.Reason)
	return wrong.Err()
}

// resize locks the project before the volume, as everywhere.
func (in *ResizeInput) resize(ctx context.Context, t *tx.Tx) (*Volume, error) {
	found, err := tx.Collect(ctx, t, scan, `SELECT `+columns+from+`WHERE v.id = $1`, in.VolumeID)
	if err != nil {
		return nil, fmt.Errorf("load volume %s: %w", in.VolumeID, err)
	}
	if len(found) == 0 {
		return nil, audit.Missing(t, resizeAction, authz.VolumeUpdate, in.VolumeID)
	}
	seen := found[0]
	if err := audit.Require(t, resizeAction, authz.VolumeUpdate, seen.object(), seen.ID); err != nil {
		return nil, err
	}
	rules, err := overlay.Load(ctx, t, seen.TenantID, seen.ProjectID)
	if err != nil {
		return nil, err
	}
	project, err := t.Project.Query().Where(dbproject.ID(seen.ProjectID)).Only(ctx)
	if err != nil {
		return nil, fmt.Errorf("load project %s: %w", seen.ProjectID, err)
	}
	if project, err = capacity.Hold(ctx, t, project, true); err != nil {
		return nil, err
	}
	before, err := locked(ctx, t, resizeAction, authz.VolumeUpdate, seen.ID)
	if err != nil || before.SizeGiB == in.SizeGiB {
		return before, err
	}
	if err := in.grows(before); err != nil {
		return nil, err
	}
	if err := room(ctx, t, project, rules, in.SizeGiB-before.SizeGiB, 0); err != nil {
		return nil, audit.RefusedByPolicy(t, resizeAction, authz.VolumeUpdate, seen.object(), seen.ID, err)
	}
	after, err := in.write(ctx, t, before)
	if err == nil {
		err = affordable(ctx, t, rules, seen.TenantID, seen.ProjectID)
	}
	return after, audit.RefusedByPolicy(t, resizeAction, authz.VolumeUpdate, seen.object(), seen.ID, err)
}

func (in *ResizeInput) grows(v *Volume) error {
	if v.Status != volume.Ready {
		return fault.New(fault.FailedPrecondition, "the volume is %s", v.Status).At("input.volumeId")
	}
	if in.SizeGiB < v.SizeGiB {
		return fault.New(fault.FailedPrecondition, "the volume has %d GiB, and volumes only grow", v.SizeGiB).
			At("input.sizeGiB")
	}
	return nil
}

func (in *ResizeInput) write(ctx context.Context, t *tx.Tx, before *Volume) (*Volume, error) {
	var nodes []ids.ID
	err := t.QueryRow(ctx, `UPDATE volume v SET size_gib = $2, updated_at = $3, correlation_id = $4,
			trace_id = $5 WHERE v.id = $1 RETURNING platform.volume_nodes(v)`, before.ID, in.SizeGiB, t.Now,
		t.Request.CorrelationID, t.Request.TraceID).Scan(&nodes)
	if err != nil {
		return nil, fmt.Errorf("resize volume %s: %w", before.ID, err)
	}
	for _, node := range nodes {
		t.Wake(event.NodeTopic(node))
	}
	t.Wake(event.ProjectTopic(before.ProjectID))
	after := *before
	after.SizeGiB = in.SizeGiB
	return &after, audit.Write(ctx, t, audit.Entry{Action: resizeAction, Key: authz.VolumeUpdate, ObjectID: before.ID,
		Object: before.object(), Reason: in.Reason, Before: shown(before), After: shown(&after)})
}
