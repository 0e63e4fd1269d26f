package billing

import (
	"context"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/kit/scope"
)

// maxPeriods bounds a list of periods: ten years of months.
const maxPeriods = 120

// Periods reads a tenant's periods, the newest first, at most 120. Key: billing.read in the tenant. NOT_FOUND for a
// tenant that the caller cannot see.
func (s *Service) Periods(ctx context.Context, tenantID ids.ID) (found []*Period, err error) {
	at := scope.Scope{TenantID: &tenantID}
	found = []*Period{}
	actor, err := s.DB.Read(ctx, at.With(
		tx.Rows(&found, scanPeriod, `SELECT `+periodColumns+
			` FROM billing_period WHERE tenant_id = $1 ORDER BY starts_at DESC LIMIT $2`,
			tenantID, maxPeriods))...)
	if err != nil {
		return nil, err
	}
	return found, at.Require(actor, authz.BillingRead)
}

// Runs reads the runs of a tenant, the newest first. Key: billing.read on all of the tenant. NOT_FOUND for a tenant
// that the caller cannot see.
func (s *Service) Runs(ctx context.Context, tenantID ids.ID, args page.Args) (*page.Page[*Run], error) {
	const list = "billingRuns"
	after := [2]string{"9999-12-31T00:00:00Z", ""}
	if err := args.Decode(list, &after[0], &after[1]); err != nil {
		return nil, err
	}
	at := scope.Scope{TenantID: &tenantID}
	var found []*Run
	actor, err := s.DB.Read(ctx, at.With(
		tx.Rows(&found, scanRun, `SELECT `+runColumns+` FROM billing_run WHERE tenant_id = $1
			AND (created_at, id) < ($2::text::timestamptz, $3)
			ORDER BY created_at DESC, id DESC LIMIT $4`, tenantID, after[0], after[1], args.First+1))...)
	if err != nil {
		return nil, err
	}
	if err := at.Require(actor, authz.BillingRead); err != nil {
		return nil, err
	}
	return page.Cut(args, found, func(r *Run) string {
		return page.Cursor(list, r.CreatedAt.UTC().Format("2006-01-02T15:04:05.000000Z"), string(r.ID))
	}), nil
}

// Grants reads a tenant's credit, in the order in which it is used. Key: billing.read on all of the tenant. NOT_FOUND
// for a tenant that the caller cannot see.
func (s *Service) Grants(ctx context.Context, tenantID ids.ID) ([]*Grant, error) {
	at := scope.Scope{TenantID: &tenantID}
	found := []*Grant{}
	actor, err := s.DB.Read(ctx, at.With(
		tx.Rows(&found, scanGrant, grantSQL+
			`WHERE g.tenant_id = $1 ORDER BY g.priority, g.expires_at NULLS LAST, g.id
				LIMIT $2`, tenantID, maxListed))...)
	if err != nil {
		return nil, err
	}
	if err := at.Require(actor, authz.BillingRead); err != nil {
		return nil, err
	}
	return found, nil
}

// maxListed bounds a list of grants.
const maxListed = 500
