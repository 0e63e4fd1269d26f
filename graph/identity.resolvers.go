package graph

import (
	"context"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph/generated/exec"
	"github.com/gpuaas/app-platform/graph/generated/model"
	"github.com/gpuaas/app-platform/graph/read"
	"github.com/gpuaas/app-platform/service/explain"
	"github.com/gpuaas/app-platform/service/identity"
	"github.com/gpuaas/app-platform/service/kit/page"
)

func (r *mutationResolver) CreateTenant(ctx context.Context, input identity.CreateTenantInput) (*db.Tenant, error) {
	return r.Identity.CreateTenant(ctx, input)
}

func (r *mutationResolver) CreateProject(ctx context.Context, input identity.CreateProjectInput) (*db.Project, error) {
	return r.Identity.CreateProject(ctx, input)
}

func (r *mutationResolver) CreateUser(ctx context.Context, input identity.CreateUserInput) (*db.User, error) {
	return r.Identity.CreateUser(ctx, input)
}

func (r *mutationResolver) InviteUser(ctx context.Context, userID ids.ID) (*identity.Invited, error) {
	return r.Identity.Invite(ctx, userID)
}

func (r *mutationResolver) RevokeInvitation(ctx context.Context, userID ids.ID, reason *string) (*db.User, error) {
	return r.Identity.RevokeInvitation(ctx, userID, value(reason))
}

func (r *mutationResolver) SetTenantDomains(ctx context.Context, input identity.DomainsInput) (*db.Tenant, error) {
	return r.Identity.SetDomains(ctx, input)
}

func (r *mutationResolver) GrantRole(ctx context.Context, input identity.GrantRoleInput) (*db.RoleBinding, error) {
	return r.Identity.GrantRole(ctx, input)
}

func (r *mutationResolver) RevokeRole(ctx context.Context, bindingID ids.ID, reason *string) (*db.RoleBinding, error) {
	return r.Identity.RevokeRole(ctx, bindingID, value(reason))
}

func (r *mutationResolver) UpdateTenant(ctx context.Context, input identity.RenameInput) (*db.Tenant, error) {
	return r.Identity.UpdateTenant(ctx, input)
}

func (r *mutationResolver) UpdateProject(ctx context.Context, input identity.RenameInput) (*db.Project, error) {
	return r.Identity.UpdateProject(ctx, input)
}

func (r *mutationResolver) DeleteProject(ctx context.Context, projectID ids.ID, reason string) (*db.Project, error) {
	return r.Identity.DeleteProject(ctx, projectID, reason)
}

func (r *mutationResolver) UpdateUser(ctx context.Context, input identity.UpdateUserInput) (*db.User, error) {
	return r.Identity.UpdateUser(ctx, input)
}

func (r *mutationResolver) EndSession(ctx context.Context, sessionID ids.ID) (*identity.SessionView, error) {
	return r.Identity.RevokeSession(ctx, sessionID)
}

func (r *mutationResolver) LogoutEverywhere(ctx context.Context, userID *ids.ID, reason *string) (int, error) {
	return r.Identity.LogoutEverywhere(ctx, userID, value(reason))
}

func (r *mutationResolver) UpdateServiceAccount(ctx context.Context, input identity.UpdateServiceAccountInput) (*db.ServiceAccount, error) {
	return r.Identity.UpdateServiceAccount(ctx, input)
}

func (r *mutationResolver) DeleteServiceAccount(ctx context.Context, serviceAccountID ids.ID, reason *string) (*db.ServiceAccount, error) {
	return r.Identity.DeleteServiceAccount(ctx, serviceAccountID, value(reason))
}

func (r *mutationResolver) RotateServiceAccountKey(ctx context.Context, input identity.RotateKeyInput) (*model.CreateServiceAccountKeyPayload, error) {
	key, secret, err := r.Identity.RotateServiceAccountKey(ctx, input)
	if err != nil {
		return nil, err
	}
	return &model.CreateServiceAccountKeyPayload{Key: key, Secret: secret}, nil
}

func (r *mutationResolver) CreateServiceAccount(ctx context.Context, input identity.CreateServiceAccountInput) (*db.ServiceAccount, error) {
	return r.Identity.CreateServiceAccount(ctx, input)
}

func (r *mutationResolver) CreateServiceAccountKey(ctx context.Context, input model.CreateServiceAccountKeyInput) (*model.CreateServiceAccountKeyPayload, error) {
	key, secret, err := r.Identity.CreateServiceAccountKey(ctx, input.ServiceAccountID, input.ExpiresAt)
	if err != nil {
		return nil, err
	}
	return &model.CreateServiceAccountKeyPayload{Key: key, Secret: secret}, nil
}

func (r *mutationResolver) RevokeServiceAccountKey(ctx context.Context, keyID ids.ID, reason *string) (*db.ServiceAccountKey, error) {
	return r.Identity.RevokeServiceAccountKey(ctx, keyID, value(reason))
}

func (r *mutationResolver) CreateLoginLink(ctx context.Context, userID ids.ID) (*model.LoginLinkPayload, error) {
	link, err := r.Identity.CreateLoginLink(ctx, userID)
	if err != nil {
		return nil, err
	}
	return &model.LoginLinkPayload{Code: link.Code, URL: link.URL, ExpiresAt: link.ExpiresAt}, nil
}

func (r *queryResolver) Viewer(ctx context.Context) (*identity.Viewer, error) {
	return r.Identity.Viewer(ctx)
}

func (r *queryResolver) Roles(ctx context.Context) ([]*identity.RoleView, error) {
	return r.Identity.Roles(ctx)
}

func (r *queryResolver) PermissionKeys(ctx context.Context) ([]*identity.PermissionKeyView, error) {
	return r.Identity.PermissionKeys(ctx)
}

func (r *queryResolver) RoleBindings(ctx context.Context, tenantID *ids.ID, projectID *ids.ID, ended bool, first *int, after *string) (*model.RoleBindingConnection, error) {
	args, err := page.Of(first, after, read.StandardPage, page.Max)
	if err != nil {
		return nil, err
	}
	return read.Connection[model.RoleBindingConnection](r.Identity.RoleBindings(ctx,
		identity.BindingsFilter{TenantID: tenantID, ProjectID: projectID, Ended: ended}, args))
}

func (r *queryResolver) ExplainPermission(ctx context.Context, input explain.Input) (*explain.Explanation, error) {
	return r.Explain.Permission(ctx, input)
}

func (r *queryResolver) MadeUnder(ctx context.Context, bindingID ids.ID) ([]*identity.Derived, error) {
	return r.Identity.MadeUnder(ctx, bindingID)
}

func (r *queryResolver) PlanServiceAccountUpdate(ctx context.Context, input identity.UpdateServiceAccountInput) (*identity.AccountChange, error) {
	return r.Identity.PlanServiceAccountUpdate(ctx, input)
}

func (r *queryResolver) Project(ctx context.Context, id ids.ID) (*db.Project, error) {
	return r.Identity.Project(ctx, id)
}

func (r *queryResolver) Tenants(ctx context.Context, first *int, after *string) (*model.TenantConnection, error) {
	return read.List[model.TenantConnection](ctx, first, after, read.StandardPage, r.Identity.Tenants)
}

func (r *queryResolver) Users(ctx context.Context, tenantID ids.ID, waiting bool, first *int, after *string) (*model.UserConnection, error) {
	args, err := page.Of(first, after, read.StandardPage, page.Max)
	if err != nil {
		return nil, err
	}
	return read.Connection[model.UserConnection](r.Identity.Users(ctx, tenantID, waiting, args))
}

func (r *queryResolver) ServiceAccounts(ctx context.Context, projectID ids.ID, first *int, after *string) (*model.ServiceAccountConnection, error) {
	return read.ListOf[model.ServiceAccountConnection](ctx, projectID, first, after, r.Identity.ServiceAccounts)
}

func (r *serviceAccountResolver) Limits(ctx context.Context, obj *db.ServiceAccount) (*identity.AccountLimits, error) {
	return identity.LimitsOf(obj)
}

func (r *serviceAccountResolver) Keys(ctx context.Context, obj *db.ServiceAccount) ([]*db.ServiceAccountKey, error) {
	return read.Many(ctx, read.Of(ctx).Keys, obj.ID)
}

func (r *viewerResolver) Sessions(ctx context.Context, obj *identity.Viewer) ([]*identity.SessionView, error) {
	return r.Identity.Sessions(ctx)
}

func (r *viewerResolver) Projects(ctx context.Context, obj *identity.Viewer, first *int, after *string) (*model.ProjectConnection, error) {
	return read.List[model.ProjectConnection](ctx, first, after, read.StandardPage, r.Identity.Projects)
}

func (r *viewerResolver) Permissions(ctx context.Context, obj *identity.Viewer, projectID ids.ID) ([]string, error) {
	return r.Identity.Permissions(ctx, projectID)
}

func (r *Resolver) ServiceAccount() exec.ServiceAccountResolver { return &serviceAccountResolver{r} }

func (r *Resolver) Viewer() exec.ViewerResolver { return &viewerResolver{r} }

type (
	serviceAccountResolver struct{ *Resolver }
	viewerResolver         struct{ *Resolver }
)
