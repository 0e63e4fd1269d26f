package books

import (
	"context"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/rating"
	"github.com/gpuaas/app-platform/graph/generated/model"
	"github.com/gpuaas/app-platform/graph/read"
	"github.com/gpuaas/app-platform/service/billing"
	"github.com/gpuaas/app-platform/service/billing/export"
	"github.com/gpuaas/app-platform/service/billing/why"
	"github.com/gpuaas/app-platform/service/price"
)

func (r Writes) SetPrice(ctx context.Context, input price.VersionInput) (*price.Version, error) {
	return r.prices.SetVersion(ctx, input)
}

func (r Writes) Rerate(ctx context.Context, input price.VersionInput) (*price.Version, error) {
	return r.billing.Rerate(ctx, input)
}

func (r Writes) SetBillingAccount(ctx context.Context, input billing.AccountInput) (*billing.Account, error) {
	return r.billing.SetAccount(ctx, input)
}

func (r Writes) GrantCredit(ctx context.Context, input billing.GrantInput) (*billing.Grant, error) {
	return r.billing.GrantCredit(ctx, input)
}

func (r Writes) ReopenPeriod(ctx context.Context, periodID ids.ID, planHash string,
	reason string) (*billing.Period, error) {
	return r.billing.Reopen(ctx, periodID, planHash, reason)
}

func (r Reads) BillingPeriods(ctx context.Context, tenantID ids.ID) ([]*billing.Period, error) {
	return r.billing.Periods(ctx, tenantID)
}

func (r Reads) BillingRuns(ctx context.Context, tenantID ids.ID, first *int,
	after *string) (*model.BillingRunConnection, error) {
	return read.ListOf[model.BillingRunConnection](ctx, tenantID, first, after, r.billing.Runs)
}

func (r Reads) VerifyBillingRun(ctx context.Context, id ids.ID) (*billing.Verification, error) {
	return r.billing.Verify(ctx, id)
}

func (r Reads) Statement(ctx context.Context, tenantID *ids.ID, projectID *ids.ID,
	periodID *ids.ID) (*billing.Statement, error) {
	return r.billing.Statement(ctx, billing.Filter{TenantID: tenantID, ProjectID: projectID, PeriodID: periodID})
}

func (r Reads) ExportStatement(ctx context.Context, tenantID *ids.ID, projectID *ids.ID, periodID *ids.ID,
	format rating.StatementFormat, focus string) (*export.Export, error) {
	return export.Statement(ctx, r.billing, billing.Filter{TenantID: tenantID, ProjectID: projectID,
		PeriodID: periodID},
		format, focus)
}

func (r Reads) ExplainLine(ctx context.Context, projectID ids.ID, periodID ids.ID, key string,
	records int) (*why.Explanation, error) {
	return why.Line(ctx, r.billing.DB, why.Question{ProjectID: projectID, PeriodID: periodID, Key: key,
		Records: records})
}

func (r Reads) CreditGrants(ctx context.Context, tenantID ids.ID) ([]*billing.Grant, error) {
	return r.billing.Grants(ctx, tenantID)
}

func (r Reads) PlanRerate(ctx context.Context, input price.VersionInput) (*billing.Plan, error) {
	return r.billing.PlanRerate(ctx, input)
}

func (r Reads) PlanReopenPeriod(ctx context.Context, periodID ids.ID) (*billing.Plan, error) {
	return r.billing.PlanReopen(ctx, periodID)
}
