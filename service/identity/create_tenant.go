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

// CreateTenantInput is the input for a new tenant.
type CreateTenantInput struct {
	Slug, DisplayName, IdempotencyKey string
	// Platform marks the platform's own tenant, where system apps run.
	Platform bool `json:",omitempty"`
}

// CreateTenant creates a tenant. Key: tenant.create on the platform. CONFLICT when the short name is taken, and at
// input.platform when the platform has a tenant of its own.
func (s *Service) CreateTenant(ctx context.Context, in CreateTenantInput) (out *db.Tenant, err error) {
	const action = "createTenant"
	var input check.Input
	input.Slug("input.slug", in.Slug)
	input.Text("input.displayName", in.DisplayName, 1, 100)
	if err := input.Err(); err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		if err := audit.Require(t, action, authz.TenantCreate, authz.Object{}, ""); err != nil {
			return err
		}
		made := made{ID: ids.New(ids.Tenant)}
		repeated, err := idem.Claim(ctx, t, idem.Key{Verb: action, Value: in.IdempotencyKey, Input: in}, &made)
		if err != nil {
			return err
		}
		if repeated {
			out, err = t.Tenant.Get(ctx, made.ID)
			return err
		}
		out, err = t.Tenant.Create().SetID(made.ID).SetSlug(in.Slug).SetDisplayName(in.DisplayName).
			SetPlatform(in.Platform).SetCreatedAt(t.Now).Save(ctx)
		if tx.Violates(err, "tenant_one_platform") {
			return fault.New(fault.Conflict, "the platform has a tenant of its own already").At("input.platform").
				Retry(false)
		}
		if tx.Violates(err, "tenant_slug_key") {
			return fault.New(fault.Conflict, "a tenant %q exists already", in.Slug).At("input.slug").Retry(false)
		}
		if err != nil {
			return fmt.Errorf("create tenant: %w", err)
		}
		return audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.TenantCreate,
			Object: authz.Object{TenantID: made.ID}, ObjectID: made.ID,
			After: map[string]any{"slug": in.Slug, "displayName": in.DisplayName, "platform": in.Platform}})
	})
	return out, err
}
