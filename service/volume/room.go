package volume

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/policy"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
)

// maxVolumes bounds the volumes of a project that are not deleted.
const maxVolumes = 1_000

// room refuses GiB and volumes that, with those that are not deleted, exceed what a project, whose row is locked, may
// have: LIMIT_EXCEEDED by its quota at input.sizeGiB and by the platform's bound at input.projectId, POLICY_DENIED by
// policy at input.sizeGiB.
func room(ctx context.Context, t *tx.Tx, project *db.Project, rules *policy.Effective, gib, volumes int) error {
	const path = "input.sizeGiB"
	var has, held int
	err := t.QueryRow(ctx, `SELECT count(*), coalesce(sum(size_gib), 0) FROM volume WHERE project_id = $1
		AND deleted_at IS NULL`, project.ID).Scan(&has, &held)
	if err != nil {
		return fmt.Errorf("count the volumes of %s: %w", project.ID, err)
	}
	if volumes > 0 && has+volumes > maxVolumes {
		return fault.New(fault.LimitExceeded, "the project may have %d volumes, and has %d", maxVolumes, has).
			At("input.projectId")
	}
	if err := rules.VolumeGiB(held+gib, path); err != nil {
		return err
	}
	if most := project.MaxVolumeGib; most != nil && held+gib > *most {
		return fault.New(fault.LimitExceeded,
			"the project may have %d GiB of volumes, has %d, and this would be %d more", *most, held, gib).At(path)
	}
	return nil
}
