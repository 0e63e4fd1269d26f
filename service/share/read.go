package share

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/manifest"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/kit/rows"
)

// list names the cursors of lists of shares.
const list = "controlPlaneShares"

// List reads the shares that a project offers or is offered, newest first, and with ended those that have ended. It
// requires control_plane.read on the project. NOT_FOUND when that is missing or hidden.
func (s *Service) List(ctx context.Context, projectID ids.ID, ended bool,
	args page.Args) (*page.Page[*db.ControlPlaneShare], error) {
	var after ids.ID
	if err := args.Decode(list, &after); err != nil {
		return nil, err
	}
	sql := `SELECT ` + rows.ControlPlaneShareColumns +
		` FROM control_plane_share WHERE (project_id = $1 OR owner_project_id = $1) AND ($2 = '' OR id < $2)`
	if !ended {
		sql += ` AND ended_at IS NULL`
	}
	var project *db.Project
	var found []*db.ControlPlaneShare
	actor, err := s.DB.Read(ctx,
		tx.Row(&project, rows.ProjectRef, `SELECT id, tenant_id FROM project WHERE id = $1`, projectID),
		tx.Rows(&found, rows.ControlPlaneShare, sql+` ORDER BY id DESC LIMIT $3`, projectID, string(after),
			args.First+1))
	if err != nil {
		return nil, err
	}
	if project == nil {
		return nil, fault.NoSuch()
	}
	if err := authz.RequireOn(actor, authz.ControlPlaneRead,
		authz.Object{TenantID: project.TenantID, ProjectID: project.ID}); err != nil {
		return nil, err
	}
	return page.Cut(args, found, func(row *db.ControlPlaneShare) string { return page.Cursor(list, row.ID) }), nil
}

// Get reads a share. It requires control_plane.read at either of its ends.
func (s *Service) Get(ctx context.Context, id ids.ID) (*db.ControlPlaneShare, error) {
	var found *db.ControlPlaneShare
	actor, err := s.DB.Read(ctx, tx.Row(&found, rows.ControlPlaneShare, `SELECT `+rows.ControlPlaneShareColumns+`
		FROM control_plane_share WHERE id = $1`, id))
	if err != nil {
		return nil, err
	}
	if found == nil {
		return nil, fault.NoSuch()
	}
	if actor.AllowsOn(authz.ControlPlaneRead, objectAt(found, found.OwnerProjectID)) {
		return found, nil
	}
	return found, authz.RequireOn(actor, authz.ControlPlaneRead, objectAt(found, found.ProjectID))
}

// ControlPlane is what an attached project sees of a shared control plane.
type ControlPlane struct {
	InstanceID                                  ids.ID
	Name, AppSlug, AppVersion, PermissionFamily string
	Status                                      lifecycle.InstanceStatus
	Health                                      lifecycle.Health
	Actions                                     []manifest.Action
}

// ControlPlanes reads what is shared, by share, at most 500. The owner's end sees it always; the other one as long as
// the share is open. It requires control_plane.read at either end; what may not be seen is left out.
func (s *Service) ControlPlanes(ctx context.Context, shares []ids.ID) (map[ids.ID]*ControlPlane, error) {
	var found []*shared
	actor, err := s.DB.Read(ctx, tx.Rows(&found, scanShared, `SELECT share_id, share_tenant, share_project,
		owner_project,
		instance_id, name,
		app_slug, app_version, permission_family, status, health, document FROM platform.shared_planes($1)`, shares))
	if err != nil {
		return nil, err
	}
	out := make(map[ids.ID]*ControlPlane, len(found))
	for _, one := range found {
		if !actor.AllowsOn(authz.ControlPlaneRead, objectAt(&one.share, one.share.OwnerProjectID)) &&
			!actor.AllowsOn(authz.ControlPlaneRead, objectAt(&one.share, one.share.ProjectID)) {
			continue
		}
		parsed, err := manifest.Parse(one.document)
		if err != nil {
			return nil, fmt.Errorf("read the manifest of %s: %w", one.plane.InstanceID, err)
		}
		one.plane.Actions = parsed.Actions
		out[one.share.ID] = &one.plane
	}
	return out, nil
}

// shared is a control plane with the share that it is seen through.
type shared struct {
	share    db.ControlPlaneShare
	plane    ControlPlane
	document []byte
}

func scanShared(row pgx.CollectableRow) (*shared, error) {
	x := new(shared)
	err := row.Scan((*string)(&x.share.ID), (*string)(&x.share.TenantID), (*string)(&x.share.ProjectID),
		(*string)(&x.share.OwnerProjectID),
		(*string)(&x.plane.InstanceID), &x.plane.Name, &x.plane.AppSlug, &x.plane.AppVersion, &x.plane.PermissionFamily,
		(*string)(&x.plane.Status), (*string)(&x.plane.Health), &x.document)
	x.share.InstanceID = x.plane.InstanceID
	return x, err
}
