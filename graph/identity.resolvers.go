package graph

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph/generated/exec"
	"github.com/gpuaas/app-platform/graph/generated/model"
	"github.com/gpuaas/app-platform/service/explain"
	"github.com/gpuaas/app-platform/service/identity"
	"github.com/gpuaas/app-platform/service/page"
)

func (r *mutationResolver) CreateTenant(ctx context.Context, input model.CreateTenantInput) (*db.Tenant, error) {
	return r.Identity.CreateTenant(ctx, identity.CreateTenantInput{Slug: input.Slug, DisplayName: input.DisplayName, IdempotencyKey: input.IdempotencyKey})
}

func (r *mutationResolver) CreateProject(ctx context.Context, input model.CreateProjectInput) (*db.Project, error) {
	return r.Identity.CreateProject(ctx, identity.CreateProjectInput{
		TenantID: input.TenantID, Slug: input.Slug, DisplayName: input.DisplayName, IdempotencyKey: input.IdempotencyKey,
	})
}

func (r *mutationResolver) CreateUser(ctx context.Context, input model.CreateUserInput) (*db.User, error) {
	return r.Identity.CreateUser(ctx, identity.CreateUserInput{
		TenantID: input.TenantID, Email: input.Email, DisplayName: input.DisplayName, IdempotencyKey: input.IdempotencyKey,
	})
}

func (r *mutationResolver) GrantRole(ctx context.Context, input model.GrantRoleInput) (*db.RoleBinding, error) {
	return r.Identity.GrantRole(ctx, identity.GrantRoleInput{
		SubjectID: input.SubjectID, Role: input.Role, TenantID: input.TenantID, ProjectID: input.ProjectID,
		ExpiresAt: input.ExpiresAt, Reason: value(input.Reason),
	})
}

func (r *mutationResolver) RevokeRole(ctx context.Context, bindingID ids.ID, reason *string) (*db.RoleBinding, error) {
	return r.Identity.RevokeRole(ctx, bindingID, value(reason))
}

func (r *mutationResolver) UpdateTenant(ctx context.Context, input model.UpdateTenantInput) (*db.Tenant, error) {
	panic(fmt.Errorf("not implemented: UpdateTenant - updateTenant"))
}

func (r *mutationResolver) UpdateProject(ctx context.Context, input model.UpdateProjectInput) (*db.Project, error) {
	panic(fmt.Errorf("not implemented: UpdateProject - updateProject"))
}

func (r *mutationResolver) DeleteProject(ctx context.Context, projectID ids.ID, reason string) (*db.Project, error) {
	panic(fmt.Errorf("not implemented: DeleteProject - deleteProject"))
}

func (r *mutationResolver) UpdateUser(ctx context.Context, input model.UpdateUserInput) (*db.User, error) {
	panic(fmt.Errorf("not implemented: UpdateUser - updateUser"))
}

func (r *mutationResolver) EndSession(ctx context.Context, sessionID ids.ID) (*identity.SessionView, error) {
	panic(fmt.Errorf("not implemented: EndSession - endSession"))
}

func (r *mutationResolver) LogoutEverywhere(ctx context.Context, userID *ids.ID, reason *string) (int, error) {
	panic(fmt.Errorf("not implemented: LogoutEverywhere - logoutEverywhere"))
}

func (r *mutationResolver) UpdateServiceAccount(ctx context.Context, input model.UpdateServiceAccountInput) (*db.ServiceAccount, error) {
	panic(fmt.Errorf("not implemented: UpdateServiceAccount - updateServiceAccount"))
}

func (r *mutationResolver) DeleteServiceAccount(ctx context.Context, serviceAccountID ids.ID, reason *string) (*db.ServiceAccount, error) {
	panic(fmt.Errorf("not implemented: DeleteServiceAccount - deleteServiceAccount"))
}

func (r *mutationResolver) RotateServiceAccountKey(ctx context.Context, input model.RotateServiceAccountKeyInput) (*model.CreateServiceAccountKeyPayload, error) {
	panic(fmt.Errorf("not implemented: RotateServiceAccountKey - rotateServiceAccountKey"))
}

func (r *mutationResolver) CreateServiceAccount(ctx context.Context, input model.CreateServiceAccountInput) (*db.ServiceAccount, error) {
	return r.Identity.CreateServiceAccount(ctx, identity.CreateServiceAccountInput{
		ProjectID: input.ProjectID, Name: input.Name, PermissionKeys: input.PermissionKeys, IdempotencyKey: input.IdempotencyKey,
	})
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
	panic(fmt.Errorf("not implemented: Roles - roles"))
}

func (r *queryResolver) PermissionKeys(ctx context.Context) ([]*identity.PermissionKeyView, error) {
	panic(fmt.Errorf("not implemented: PermissionKeys - permissionKeys"))
}

func (r *queryResolver) RoleBindings(ctx context.Context, tenantID *ids.ID, projectID *ids.ID, ended bool, first *int, after *string) (*model.RoleBindingConnection, error) {
	panic(fmt.Errorf("not implemented: RoleBindings - roleBindings"))
}

func (r *queryResolver) ExplainPermission(ctx context.Context, input model.ExplainPermissionInput) (*explain.Explanation, error) {
	panic(fmt.Errorf("not implemented: ExplainPermission - explainPermission"))
}

func (r *queryResolver) Project(ctx context.Context, id ids.ID) (*db.Project, error) {
	return r.Identity.Project(ctx, id)
}

func (r *queryResolver) Users(ctx context.Context, tenantID ids.ID, first *int, after *string) (*model.UserConnection, error) {
	args, err := page.Of(first, after, standardPage, page.Max)
	if err != nil {
		return nil, err
	}
	p, err := r.Identity.Users(ctx, tenantID, args)
	if err != nil {
		return nil, err
	}
	return &model.UserConnection{PageInfo: pageInfo(p), Edges: edges(p, func(cursor string, row *db.User) *model.UserEdge {
		return &model.UserEdge{Cursor: cursor, Node: row}
	})}, nil
}

func (r *queryResolver) ServiceAccounts(ctx context.Context, projectID ids.ID, first *int, after *string) (*model.ServiceAccountConnection, error) {
	args, err := page.Of(first, after, standardPage, page.Max)
	if err != nil {
		return nil, err
	}
	p, err := r.Identity.ServiceAccounts(ctx, projectID, args)
	if err != nil {
		return nil, err
	}
	return &model.ServiceAccountConnection{PageInfo: pageInfo(p), Edges: edges(p, func(cursor string, row *db.ServiceAccount) *model.ServiceAccountEdge {
		return &model.ServiceAccountEdge{Cursor: cursor, Node: row}
	})}, nil
}

func (r *serviceAccountResolver) Limits(ctx context.Context, obj *db.ServiceAccount) (*identity.AccountLimits, error) {
	panic(fmt.Errorf("not implemented: Limits - limits"))
}

func (r *serviceAccountResolver) Keys(ctx context.Context, obj *db.ServiceAccount) ([]*db.ServiceAccountKey, error) {
	return some(loadersOf(ctx).catalog.keys.Load(ctx, obj.ID))
}

func (r *viewerResolver) Sessions(ctx context.Context, obj *identity.Viewer) ([]*identity.SessionView, error) {
	panic(fmt.Errorf("not implemented: Sessions - sessions"))
}

func (r *viewerResolver) Projects(ctx context.Context, obj *identity.Viewer, first *int, after *string) (*model.ProjectConnection, error) {
	args, err := page.Of(first, after, standardPage, page.Max)
	if err != nil {
		return nil, err
	}
	p, err := r.Identity.Projects(ctx, args)
	if err != nil {
		return nil, err
	}
	return &model.ProjectConnection{PageInfo: pageInfo(p), Edges: edges(p, func(cursor string, row *db.Project) *model.ProjectEdge {
		return &model.ProjectEdge{Cursor: cursor, Node: row}
	})}, nil
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
