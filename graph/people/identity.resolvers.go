package people

import (
	"context"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph/generated/model"
	"github.com/gpuaas/app-platform/graph/read"
	"github.com/gpuaas/app-platform/service/explain"
	"github.com/gpuaas/app-platform/service/identity"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/kit/posix"
)

func (r Mutations) CreateTenant(ctx context.Context, input identity.CreateTenantInput) (*db.Tenant, error) {
	return r.identity.CreateTenant(ctx, input)
}

func (r Mutations) CreateProject(ctx context.Context, input identity.CreateProjectInput) (*db.Project, error) {
	return r.identity.CreateProject(ctx, input)
}

func (r Mutations) CreateUser(ctx context.Context, input identity.CreateUserInput) (*db.User, error) {
	return r.identity.CreateUser(ctx, input)
}

func (r Mutations) InviteUser(ctx context.Context, userID ids.ID) (*identity.Invited, error) {
	return r.identity.Invite(ctx, userID)
}

func (r Mutations) RevokeInvitation(ctx context.Context, userID ids.ID, reason *string) (*db.User, error) {
	return r.identity.RevokeInvitation(ctx, userID, read.Value(reason))
}

func (r Mutations) SetTenantDomains(ctx context.Context, input identity.DomainsInput) (*db.Tenant, error) {
	return r.identity.SetDomains(ctx, input)
}

func (r Mutations) GrantRole(ctx context.Context, input identity.GrantRoleInput) (*db.RoleBinding, error) {
	return r.identity.GrantRole(ctx, input)
}

func (r Mutations) RevokeRole(ctx context.Context, bindingID ids.ID, reason *string) (*db.RoleBinding, error) {
	return r.identity.RevokeRole(ctx, bindingID, read.Value(reason))
}

func (r Mutations) UpdateTenant(ctx context.Context, input identity.RenameInput) (*db.Tenant, error) {
	return r.identity.UpdateTenant(ctx, input)
}

func (r Mutations) UpdateProject(ctx context.Context, input identity.RenameInput) (*db.Project, error) {
	return r.identity.UpdateProject(ctx, input)
}

func (r Mutations) DeleteProject(ctx context.Context, projectID ids.ID, reason string) (*db.Project, error) {
	return r.identity.DeleteProject(ctx, projectID, reason)
}

func (r Mutations) UpdateUser(ctx context.Context, input identity.UpdateUserInput) (*db.User, error) {
	return r.identity.UpdateUser(ctx, input)
}

func (r Mutations) EndSession(ctx context.Context, sessionID ids.ID) (*identity.SessionView, error) {
	return r.identity.RevokeSession(ctx, sessionID)
}

func (r Mutations) LogoutEverywhere(ctx context.Context, userID *ids.ID, reason *string) (int, error) {
	return r.identity.LogoutEverywhere(ctx, userID, read.Value(reason))
}

func (r Mutations) UpdateServiceAccount(ctx context.Context,
	input identity.UpdateServiceAccountInput) (*db.ServiceAccount, error) {
	return r.identity.UpdateServiceAccount(ctx, input)
}

func (r Mutations) DeleteServiceAccount(ctx context.Context, serviceAccountID ids.ID,
	reason *string) (*db.ServiceAccount, error) {
	return r.identity.DeleteServiceAccount(ctx, serviceAccountID, read.Value(reason))
}

func (r Mutations) RotateServiceAccountKey(ctx context.Context,
	input identity.RotateKeyInput) (*model.CreateServiceAccountKeyPayload, error) {
	key, secret, err := r.identity.RotateServiceAccountKey(ctx, input)
	if err != nil {
		return nil, err
	}
	return &model.CreateServiceAccountKeyPayload{Key: key, Secret: secret}, nil
}

func (r Mutations) CreateServiceAccount(ctx context.Context,
	input identity.CreateServiceAccountInput) (*db.ServiceAccount, error) {
	return r.identity.CreateServiceAccount(ctx, input)
}

func (r Mutations) CreateServiceAccountKey(ctx context.Context,
	input model.CreateServiceAccountKeyInput) (*model.CreateServiceAccountKeyPayload, error) {
	key, secret, err := r.identity.CreateServiceAccountKey(ctx, input.ServiceAccountID, input.ExpiresAt)
	if err != nil {
		return nil, err
	}
	return &model.CreateServiceAccountKeyPayload{Key: key, Secret: secret}, nil
}

func (r Mutations) RevokeServiceAccountKey(ctx context.Context, keyID ids.ID,
	reason *string) (*db.ServiceAccountKey, error) {
	return r.identity.RevokeServiceAccountKey(ctx, keyID, read.Value(reason))
}

func (r Mutations) CreateLoginLink(ctx context.Context, userID ids.ID) (*model.LoginLinkPayload, error) {
	link, err := r.identity.CreateLoginLink(ctx, userID)
	if err != nil {
		return nil, err
	}
	return &model.LoginLinkPayload{Code: link.Code, URL: link.URL, ExpiresAt: link.ExpiresAt}, nil
}

func (r Queries) Viewer(ctx context.Context) (*identity.Viewer, error) {
	return r.identity.Viewer(ctx)
}

func (r Queries) Roles(ctx context.Context) ([]*identity.RoleView, error) {
	return r.identity.Roles(ctx)
}

func (r Queries) PermissionKeys(ctx context.Context) ([]*identity.PermissionKeyView, error) {
	return r.identity.PermissionKeys(ctx)
}

func (r Queries) RoleBindings(ctx context.Context, tenantID *ids.ID, projectID *ids.ID, ended bool, first *int,
	after *string) (*model.RoleBindingConnection, error) {
	args, err := page.Of(first, after, read.StandardPage, page.Max)
	if err != nil {
		return nil, err
	}
	return read.Connection[model.RoleBindingConnection](r.identity.RoleBindings(ctx,
		identity.BindingsFilter{TenantID: tenantID, ProjectID: projectID, Ended: ended}, args))
}

func (r Queries) ExplainPermission(ctx context.Context, input explain.Input) (*explain.Explanation, error) {
	return r.explain.Permission(ctx, input)
}

func (r Queries) MadeUnder(ctx context.Context, bindingID ids.ID) ([]*identity.Derived, error) {
	return r.identity.MadeUnder(ctx, bindingID)
}

func (r Queries) PlanServiceAccountUpdate(ctx context.Context,
	input identity.UpdateServiceAccountInput) (*identity.AccountChange, error) {
	return r.identity.PlanServiceAccountUpdate(ctx, input)
}

func (r Queries) Project(ctx context.Context, id ids.ID) (*db.Project, error) {
	return r.identity.Project(ctx, id)
}

func (r Queries) Tenants(ctx context.Context, first *int, after *string) (*model.TenantConnection, error) {
	return read.List[model.TenantConnection](ctx, first, after, read.StandardPage, r.identity.Tenants)
}

func (r Queries) Users(ctx context.Context, tenantID ids.ID, waiting bool, first *int,
	after *string) (*model.UserConnection, error) {
	args, err := page.Of(first, after, read.StandardPage, page.Max)
	if err != nil {
		return nil, err
	}
	return read.Connection[model.UserConnection](r.identity.Users(ctx, tenantID, waiting, args))
}

func (r Queries) ServiceAccounts(ctx context.Context, projectID ids.ID, first *int,
	after *string) (*model.ServiceAccountConnection, error) {
	return read.ListOf[model.ServiceAccountConnection](ctx, projectID, first, after, r.identity.ServiceAccounts)
}

func (r Users) Posix(ctx context.Context, obj *db.User) (*posix.Identity, error) {
	return read.Maybe(ctx, read.Of(ctx).Accounts, &obj.ID)
}

func (r ServiceAccounts) Posix(ctx context.Context, obj *db.ServiceAccount) (*posix.Identity, error) {
	return read.Maybe(ctx, read.Of(ctx).Accounts, &obj.ID)
}

func (r ServiceAccounts) Limits(ctx context.Context, obj *db.ServiceAccount) (*identity.AccountLimits, error) {
	return identity.LimitsOf(obj)
}

func (r ServiceAccounts) Keys(ctx context.Context, obj *db.ServiceAccount) ([]*db.ServiceAccountKey, error) {
	return read.Many(ctx, read.Of(ctx).Keys, obj.ID)
}

func (r Viewer) Posix(ctx context.Context, obj *identity.Viewer) (*posix.Identity, error) {
	if obj.Tenant == nil { // staff and nodes
		return nil, nil
	}
	id := ids.ID(obj.Actor.ID)
	return read.Maybe(ctx, read.Of(ctx).Accounts, &id)
}

func (r Viewer) Sessions(ctx context.Context, obj *identity.Viewer) ([]*identity.SessionView, error) {
	return r.identity.Sessions(ctx)
}

func (r Viewer) Projects(ctx context.Context, obj *identity.Viewer, first *int,
	after *string) (*model.ProjectConnection, error) {
	return read.List[model.ProjectConnection](ctx, first, after, read.StandardPage, r.identity.Projects)
}

func (r Viewer) Permissions(ctx context.Context, obj *identity.Viewer, projectID ids.ID) ([]string, error) {
	return r.identity.Permissions(ctx, projectID)
}
