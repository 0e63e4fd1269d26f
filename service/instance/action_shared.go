package instance

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// actingFor returns the object on which an action's key is required: the instance's project, or another one that is
// attached to the instance, with the share that attaches it. The share is locked until the commit, so that a detachment
// comes either before the action or after it. NOT_FOUND when the project is not attached.
func actingFor(
	ctx context.Context, t *tx.Tx, row *db.Instance, project ids.ID,
) (where authz.Object, share ids.ID, err error) {
	if project == "" || project == row.ProjectID {
		return object(row), "", nil
	}
	err = t.QueryRow(ctx, `SELECT id FROM control_plane_share WHERE instance_id = $1 AND project_id = $2
		AND status = 'ATTACHED'
		AND ended_at IS NULL FOR SHARE`, row.ID, project).Scan((*string)(&share))
	if errors.Is(err, pgx.ErrNoRows) {
		return where, "", audit.Missing(t, "invokeAction", authz.FamilyKeys("instance.read")[0], row.ID)
	}
	if err != nil {
		return where, "", fmt.Errorf("lock the share of %s with %s: %w", row.ID, project, err)
	}
	return authz.Object{TenantID: row.TenantID, ProjectID: project, InstanceID: row.ID,
		AppSlug: row.AppSlug}, share, nil
}

// prepareShared loads what the adapter is sent about an instance that the caller sees only through a share. The caller
// may act, but what lies below the instance is the owner's: the platform reads it and passes it to the adapter alone.
func (s *Service) prepareShared(ctx context.Context, p *preparedAction, in ActionInput) error {
	if p.share == "" {
		return nil
	}
	return s.DB.As(ctx, p.actor, func(ctx context.Context, t *tx.Tx) error { return p.prepare(ctx, t, in) })
}
