package identity

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/kit/idem"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// CreateProjectInput is the input for a new project.
type CreateProjectInput struct {
	TenantID                          ids.ID
	Slug, DisplayName, IdempotencyKey string
}

// CreateProject creates a project. Key: project.create on the tenant. CONFLICT when the tenant has one of that short
// name.
func (s *Service) CreateProject(ctx context.Context, in CreateProjectInput) (out *db.Project, err error) {
	var input check.Input
	input.Slug("input.slug", in.Slug)
	input.Text("input.displayName", in.DisplayName, 1, 100)
	if err := input.Err(); err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		out, err = createProject(ctx, t, in)
		return err
	})
	return out, err
}

func createProject(ctx context.Context, t *tx.Tx, in CreateProjectInput) (*db.Project, error) {
	const action = "createProject"
	tenant, err := tenantOf(ctx, t, action, authz.ProjectCreate, in.TenantID)
	if err != nil {
		return nil, err
	}
	object := authz.Object{TenantID: tenant.ID}
	if err := audit.Require(t, action, authz.ProjectCreate, object, tenant.ID); err != nil {
		return nil, err
	}
	made := made{ID: ids.New(ids.Project)}
	repeated, err := idem.Claim(ctx, t, idem.Key{Verb: action, TenantID: tenant.ID, Value: in.IdempotencyKey,
		Input: in},
		&made)
	if err != nil {
		return nil, err
	}
	if repeated {
		return t.Project.Get(ctx, made.ID)
	}
	row, err := t.Project.Create().SetID(made.ID).SetTenantID(tenant.ID).SetSlug(in.Slug).
		SetDisplayName(in.DisplayName).
		SetCreatedAt(t.Now).Save(ctx)
	if tx.Violates(err, "project_tenant_id_slug") {
		return nil, fault.New(fault.Conflict, "the tenant has a project %q already",
			in.Slug).At("input.slug").Retry(false)
	}
	if err != nil {
		return nil, fmt.Errorf("create project: %w", err)
	}
	object.ProjectID = row.ID
	return row, audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.ProjectCreate, Object: object,
		ObjectID: row.ID, After: map[string]any{"slug": in.Slug, "displayName": in.DisplayName}})
}
