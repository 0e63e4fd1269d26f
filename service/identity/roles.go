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

// Roles lists every role, and the ceilings of machines, with their keys. Any valid credential may ask.
func (s *Service) Roles(ctx context.Context) ([]*RoleView, error) {
	if _, err := s.DB.Read(ctx); err != nil {
		return nil, err
	}
	var found []*RoleView
	for _, entry := range authz.AllRoles() {
		view := &RoleView{Name: string(entry.Role), Description: entry.Description, Scopes: []string{},
			PermissionKeys: authz.RoleMask(entry.Role).Names()}
		for _, scope := range entry.Scopes {
			view.Scopes = append(view.Scopes, string(scope))
		}
		slices.Sort(view.PermissionKeys)
		found = append(found, view)
	}
	return found, nil
}

// PermissionKeys lists the whole catalogue of keys, in its order. Any valid credential may ask.
func (s *Service) PermissionKeys(ctx context.Context) ([]*PermissionKeyView, error) {
	if _, err := s.DB.Read(ctx); err != nil {
		return nil, err
	}
	var found []*PermissionKeyView
	for _, key := range authz.Keys() {
		found = append(found, &PermissionKeyView{Name: key.String(), Description: key.Description(),
			Family: key.Family()})
	}
	return found, nil
}

// BindingsFilter is whose bindings are listed: those of a project with its tenant's, of a tenant, or, with
// neither, of the platform.
type BindingsFilter struct {
	TenantID, ProjectID *ids.ID
	// Ended lists those that were revoked or have expired too.
	Ended bool
}

// RoleBindings lists who holds which role, newest first. Key: identity.binding.read at the scope; without it on
// the tenant, a project's list holds only the project's own.
func (s *Service) RoleBindings(ctx context.Context, filter BindingsFilter, args page.Args) (*page.Page[*db.RoleBinding],
	error) {
	const list = "roleBindings"
	before := ids.ID("rb_z")
	if err := args.Decode(list, &before); err != nil {
		return nil, err
	}
	object, err := s.bindingScope(ctx, filter)
	if err != nil {
		return nil, err
	}
	where := `tenant_id IS NULL AND $4 = '' AND $5 = ''`
	switch {
	case object.ProjectID != "" && object.above:
		where = `(project_id = $5 OR (tenant_id = $4 AND project_id IS NULL))`
	case object.ProjectID != "":
		where = `project_id = $5 AND tenant_id = $4`
	case object.TenantID != "":
		where = `tenant_id = $4 AND project_id IS NULL AND $5 = ''`
	}
	var found []*db.RoleBinding
	_, err = s.DB.Read(ctx, tx.Rows(&found, rows.RoleBinding, `SELECT `+rows.RoleBindingColumns+`
		FROM role_binding WHERE id < $1
		AND ($2 OR (revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $3)))
		AND `+where+` ORDER BY id DESC LIMIT $6`,
		before, filter.Ended, s.DB.Now(), object.TenantID, object.ProjectID, args.First+1))
	if err != nil {
		return nil, err
	}
	return page.Cut(args, found, func(row *db.RoleBinding) string { return page.Cursor(list, row.ID) }), nil
}

// bindingScope is a scope whose bindings the caller may read.
type bindingScope struct {
	authz.Object
	above bool // the tenant's of a project besides
}

// bindingScope authorises a list of bindings. NOT_FOUND where the caller may not look, INVALID_ARGUMENT when the
// project is not the tenant's.
func (s *Service) bindingScope(ctx context.Context, filter BindingsFilter) (out bindingScope, err error) {
	var tenant *db.Tenant
	var project *db.Project
	actor, err := s.DB.Read(ctx,
		tx.Row(&tenant, rows.Tenant, `SELECT `+rows.TenantColumns+`
			FROM tenant WHERE id = $1`, rows.Value(filter.TenantID)),
		tx.Row(&project, rows.Project, `SELECT `+rows.ProjectColumns+` FROM project
			WHERE id = $1`, rows.Value(filter.ProjectID)))
	switch {
	case err != nil:
		return out, err
	case filter.ProjectID != nil && project == nil, filter.TenantID != nil && tenant == nil:
		return out, fault.NoSuch()
	case project != nil && tenant != nil && project.TenantID != tenant.ID:
		return out, fault.New(fault.InvalidArgument, "the project belongs to another tenant").At("tenantId")
	case project != nil:
		out.Object = authz.Object{TenantID: project.TenantID, ProjectID: project.ID}
	case tenant != nil:
		out.Object = authz.Object{TenantID: tenant.ID}
	}
	out.above = actor.Allows(authz.BindingRead, out.TenantID, "")
	return out, authz.RequireOn(actor, authz.BindingRead, out.Object)
}
