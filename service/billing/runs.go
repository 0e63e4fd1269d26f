package billing

import (
	"context"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/kit/rows"
)

// maxPeriods bounds a list of periods: ten years of months.
const maxPeriods = 120

// Periods reads a tenant's periods, the newest first, at most 120. Key: billing.read in the tenant. NOT_FOUND for a tenant
// that the caller cannot see.
func (s *Service) Periods(ctx context.Context, tenantID ids.ID) (found []*Period, err error) {
	var tenant *db.Project // the id twice
	found = []*Period{}
	actor, err := s.DB.Read(ctx, tx.Row(&tenant, rows.ProjectRef, `SELECT id, id FROM tenant WHERE id = $1`, tenantID),
		tx.Rows(&found, scanPeriod, `SELECT `+periodColumns+` FROM billing_period WHERE tenant_id = $1 ORDER BY starts_at DESC LIMIT $2`,
			tenantID, maxPeriods))
	if err != nil {
		return nil, err
	}
	if tenant == nil {
		return nil, fault.NoSuch()
	}
	return found, requireRead(actor, tenantID)
}

// Runs reads the runs of a tenant, the newest first. Key: billing.read on all of the tenant. NOT_FOUND for a tenant that
// the caller cannot see.
func (s *Service) Runs(ctx context.Context, tenantID ids.ID, args page.Args) (*page.Page[*Run], error) {
	const list = "billingRuns"
	after := [2]string{"9999-12-31T00:00:00Z", ""}
	if err := args.Decode(list, &after[0], &after[1]); err != nil {
		return nil, err
	}
	var tenant *db.Project // the id twice
	var found []*Run
	actor, err := s.DB.Read(ctx, tx.Row(&tenant, rows.ProjectRef, `SELECT id, id FROM tenant WHERE id = $1`, tenantID),
		tx.Rows(&found, scanRun, `SELECT `+runColumns+` FROM billing_run WHERE tenant_id = $1 AND (created_at, id) < ($2::text::timestamptz, $3)
			ORDER BY created_at DESC, id DESC LIMIT $4`, tenantID, after[0], after[1], args.First+1))
	if err != nil {
		return nil, err
	}
	if err := mayState(actor, nil, tenant); err != nil {
		return nil, err
	}
	return page.Cut(args, found, func(r *Run) string {
		return page.Cursor(list, r.CreatedAt.UTC().Format("2006-01-02T15:04:05.000000Z"), string(r.ID))
	}), nil
}

// Grants reads a tenant's credit, in the order in which it is used. Key: billing.read on all of the tenant. NOT_FOUND for a
// tenant that the caller cannot see.
func (s *Service) Grants(ctx context.Context, tenantID ids.ID) ([]*Grant, error) {
	var tenant *db.Project // the id twice
	found := []*Grant{}
	actor, err := s.DB.Read(ctx, tx.Row(&tenant, rows.ProjectRef, `SELECT id, id FROM tenant WHERE id = $1`, tenantID),
		tx.Rows(&found, scanGrant, grantSQL+`WHERE g.tenant_id = $1 ORDER BY g.priority, g.expires_at NULLS LAST, g.id LIMIT $2`, tenantID, maxListed))
	if err != nil {
		return nil, err
	}
	if err := mayState(actor, nil, tenant); err != nil {
		return nil, err
	}
	return found, nil
}

// maxListed bounds a list of grants.
const maxListed = 500
