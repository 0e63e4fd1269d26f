package identity

import (
	"context"
	"slices"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/kit/rows"
)

// Viewer is the caller, as the platform sees it.
type Viewer struct {
	Actor *authz.Ref
	// Tenant is the caller's own; nil for platform staff and nodes.
	Tenant *db.Tenant
	// Bindings are the roles that hold now, at most 1,000; machines have none.
	Bindings []*db.RoleBinding
}

// Viewer returns the caller. Any valid credential may call it.
func (s *Service) Viewer(ctx context.Context) (*Viewer, error) {
	actor, err := s.DB.Read(ctx)
	if err != nil {
		return nil, err
	}
	ref := actor.Ref()
	out := &Viewer{Actor: &ref}
	if actor.NodeID != "" || actor.Kind == authz.KindEnrolment {
		return out, nil
	}
	_, err = s.DB.Read(ctx,
		tx.Row(&out.Tenant, rows.Tenant, `SELECT `+rows.TenantColumns+` FROM tenant WHERE id = $1`, actor.TenantID),
		tx.Rows(&out.Bindings, rows.RoleBinding, `SELECT `+rows.RoleBindingColumns+`
			FROM role_binding WHERE user_id = $1
			AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now()) ORDER BY id
			LIMIT $2`, actor.ID, maxBindings))
	return out, err
}

// Projects lists the projects that the caller can see, by id. Key: project.read, wherever it is held.
func (s *Service) Projects(ctx context.Context, args page.Args) (*page.Page[*db.Project], error) {
	const list = "projects"
	var after ids.ID
	if err := args.Decode(list, &after); err != nil {
		return nil, err
	}
	actor, err := s.DB.Read(ctx)
	if err != nil {
		return nil, err
	}
	reach := actor.Reach(authz.ProjectRead)
	var found []*db.Project
	_, err = s.DB.Read(ctx, tx.Rows(&found, rows.Project, `SELECT `+rows.ProjectColumns+` FROM project
		WHERE id > $1 AND ($2 OR id = ANY ($3) OR tenant_id = ANY ($4)) ORDER BY id LIMIT $5`,
		after, reach.Platform, texts(reach.Projects), texts(reach.Tenants), args.First+1))
	if err != nil {
		return nil, err
	}
	return page.Cut(args, found, func(row *db.Project) string { return page.Cursor(list, row.ID) }), nil
}

// texts is ids as PostgreSQL takes an array; never nil, which would be NULL.
func texts(list []ids.ID) []string {
	out := make([]string, len(list))
	for i, id := range list {
		out[i] = string(id)
	}
	return out
}

// Project reads one project. Key: project.read.
func (s *Service) Project(ctx context.Context, id ids.ID) (*db.Project, error) {
	project, actor, err := s.readProject(ctx, id)
	if err != nil {
		return nil, err
	}
	return project, authz.Require(actor, authz.ProjectRead, project.TenantID, project.ID)
}

// readProject reads a project with whatever else is wanted of it, under row-level security alone:
// the caller of this still authorises. NOT_FOUND when it is missing or hidden.
func (s *Service) readProject(ctx context.Context, id ids.ID, more ...tx.Query) (*db.Project, *authz.Actor, error) {
	var project *db.Project
	queries := append([]tx.Query{tx.Row(&project, rows.Project, `SELECT `+rows.ProjectColumns+`
		FROM project WHERE id = $1`,
		id)}, more...)
	actor, err := s.DB.Read(ctx, queries...)
	if err != nil {
		return nil, nil, err
	}
	if project == nil {
		return nil, nil, fault.NoSuch()
	}
	return project, actor, nil
}

// Permissions lists the keys the caller holds in a project, sorted. NOT_FOUND when it holds none.
func (s *Service) Permissions(ctx context.Context, projectID ids.ID) ([]string, error) {
	project, actor, err := s.readProject(ctx, projectID)
	if err != nil {
		return nil, err
	}
	names := actor.Holds(project.TenantID, project.ID).Names()
	if len(names) == 0 {
		return nil, fault.NoSuch()
	}
	slices.Sort(names)
	return names, nil
}
