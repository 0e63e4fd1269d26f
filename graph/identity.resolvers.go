package graph

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph/generated/exec"
	"github.com/gpuaas/app-platform/graph/generated/model"
)

func (r *mutationResolver) CreateTenant(ctx context.Context, input model.CreateTenantInput) (*db.Tenant, error) {
	panic(fmt.Errorf("not implemented: CreateTenant - createTenant"))
}

func (r *mutationResolver) CreateProject(ctx context.Context, input model.CreateProjectInput) (*db.Project, error) {
	panic(fmt.Errorf("not implemented: CreateProject - createProject"))
}

func (r *mutationResolver) CreateUser(ctx context.Context, input model.CreateUserInput) (*db.User, error) {
	panic(fmt.Errorf("not implemented: CreateUser - createUser"))
}

func (r *mutationResolver) GrantRole(ctx context.Context, input model.GrantRoleInput) (*db.RoleBinding, error) {
	panic(fmt.Errorf("not implemented: GrantRole - grantRole"))
}

func (r *mutationResolver) RevokeRole(ctx context.Context, bindingID ids.ID, reason *string) (*db.RoleBinding, error) {
	panic(fmt.Errorf("not implemented: RevokeRole - revokeRole"))
}

func (r *mutationResolver) CreateServiceAccount(ctx context.Context, input model.CreateServiceAccountInput) (*db.ServiceAccount, error) {
	panic(fmt.Errorf("not implemented: CreateServiceAccount - createServiceAccount"))
}

func (r *mutationResolver) CreateServiceAccountKey(ctx context.Context, input model.CreateServiceAccountKeyInput) (*model.CreateServiceAccountKeyPayload, error) {
	panic(fmt.Errorf("not implemented: CreateServiceAccountKey - createServiceAccountKey"))
}

func (r *mutationResolver) RevokeServiceAccountKey(ctx context.Context, keyID ids.ID, reason *string) (*db.ServiceAccountKey, error) {
	panic(fmt.Errorf("not implemented: RevokeServiceAccountKey - revokeServiceAccountKey"))
}

func (r *mutationResolver) CreateLoginLink(ctx context.Context, userID ids.ID) (*model.LoginLinkPayload, error) {
	panic(fmt.Errorf("not implemented: CreateLoginLink - createLoginLink"))
}

func (r *queryResolver) Viewer(ctx context.Context) (*model.Viewer, error) {
	panic(fmt.Errorf("not implemented: Viewer - viewer"))
}

func (r *queryResolver) Project(ctx context.Context, id ids.ID) (*db.Project, error) {
	panic(fmt.Errorf("not implemented: Project - project"))
}

func (r *queryResolver) Users(ctx context.Context, tenantID ids.ID, first *int, after *string) (*model.UserConnection, error) {
	panic(fmt.Errorf("not implemented: Users - users"))
}

func (r *queryResolver) ServiceAccounts(ctx context.Context, projectID ids.ID, first *int, after *string) (*model.ServiceAccountConnection, error) {
	panic(fmt.Errorf("not implemented: ServiceAccounts - serviceAccounts"))
}

func (r *serviceAccountResolver) Keys(ctx context.Context, obj *db.ServiceAccount) ([]*db.ServiceAccountKey, error) {
	panic(fmt.Errorf("not implemented: Keys - keys"))
}

func (r *Resolver) ServiceAccount() exec.ServiceAccountResolver { return &serviceAccountResolver{r} }

type serviceAccountResolver struct{ *Resolver }
