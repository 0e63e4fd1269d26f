package identity

import (
	"context"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/kit/rows"
)

// Tenants lists the platform's tenants, by id. Key: tenant.read, on the platform.
func (s *Service) Tenants(ctx context.Context, args page.Args) (*page.Page[*db.Tenant], error) {
	const list = "tenants"
	var after ids.ID
	if err := args.Decode(list, &after); err != nil {
		return nil, err
	}
	var found []*db.Tenant
	actor, err := s.DB.Read(ctx, tx.Rows(&found, rows.Tenant, `SELECT `+rows.TenantColumns+` FROM tenant WHERE id > $1
		ORDER BY id LIMIT $2`, after, args.First+1))
	if err != nil {
		return nil, err
	}
	if err := authz.Require(actor, authz.TenantRead, "", ""); err != nil {
		return nil, err
	}
	return page.Cut(args, found, func(row *db.Tenant) string { return page.Cursor(list, row.ID) }), nil
}

// Users lists the people of a tenant, by id; with waiting those alone who have not accepted their invitation. Key:
// identity.user.read on the tenant.
func (s *Service) Users(ctx context.Context, tenantID ids.ID, waiting bool, args page.Args) (*page.Page[*db.User],
	error) {
	const list = "users"
	var after ids.ID
	if err := args.Decode(list, &after); err != nil {
		return nil, err
	}
	var tenant *db.Tenant
	var found []*db.User
	actor, err := s.DB.Read(ctx,
		tx.Row(&tenant, rows.Tenant, `SELECT `+rows.TenantColumns+` FROM tenant WHERE id = $1`, tenantID),
		tx.Rows(&found, rows.User, `SELECT `+rows.UserColumns+` FROM person
			WHERE tenant_id = $1 AND id > $2 AND (NOT $4 OR (invited_at IS NOT NULL AND accepted_at IS NULL AND last_login_at IS NULL))
			ORDER BY id LIMIT $3`, tenantID, after, args.First+1, waiting))
	if err != nil {
		return nil, err
	}
	if tenant == nil {
		return nil, fault.NoSuch()
	}
	if err := authz.Require(actor, authz.UserRead, tenantID, ""); err != nil {
		return nil, err
	}
	return page.Cut(args, found, func(row *db.User) string { return page.Cursor(list, row.ID) }), nil
}

// ServiceAccounts lists the service accounts of a project, by id. Key: identity.service_account.read.
func (s *Service) ServiceAccounts(ctx context.Context, projectID ids.ID,
	args page.Args) (*page.Page[*db.ServiceAccount], error) {
	const list = "serviceAccounts"
	var after ids.ID
	if err := args.Decode(list, &after); err != nil {
		return nil, err
	}
	var found []*db.ServiceAccount
	project, actor, err := s.readProject(ctx, projectID, tx.Rows(&found, rows.ServiceAccount,
		`SELECT `+rows.ServiceAccountColumns+` FROM service_account
			WHERE project_id = $1 AND id > $2 AND deleted_at IS NULL ORDER BY id
			LIMIT $3`, projectID, after, args.First+1))
	if err != nil {
		return nil, err
	}
	if err := authz.Require(actor, authz.ServiceAccountRead, project.TenantID, project.ID); err != nil {
		return nil, err
	}
	return page.Cut(args, found, func(row *db.ServiceAccount) string { return page.Cursor(list, row.ID) }), nil
}

// KeysOf reads the keys of several service accounts at once, newest first, at most 100 each. Key:
// identity.service_account.read on each account's project: keys the caller may not see are left out.
func (s *Service) KeysOf(ctx context.Context, accounts []ids.ID) (map[ids.ID][]*db.ServiceAccountKey, error) {
	var found []*db.ServiceAccountKey
	actor, err := s.DB.Read(ctx, tx.Rows(&found, rows.ServiceAccountKey, `SELECT k.*
		FROM unnest($1::text[]) a (id), LATERAL (SELECT `+rows.ServiceAccountKeyColumns+`
			FROM service_account_key WHERE service_account_id = a.id ORDER BY id DESC LIMIT $2) k`,
		texts(accounts), maxKeys))
	if err != nil {
		return nil, err
	}
	out := make(map[ids.ID][]*db.ServiceAccountKey, len(accounts))
	for _, key := range found {
		if actor.Allows(authz.ServiceAccountRead, key.TenantID, key.ProjectID) {
			out[key.ServiceAccountID] = append(out[key.ServiceAccountID], key)
		}
	}
	return out, nil
}
