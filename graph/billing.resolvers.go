package graph

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

func (r *mutationResolver) SetPrice(ctx context.Context, input price.VersionInput) (*price.Version, error) {
	return r.Resolver.Prices.SetVersion(ctx, input)
}

func (r *mutationResolver) Rerate(ctx context.Context, input price.VersionInput) (*price.Version, error) {
	return r.Billing.Rerate(ctx, input)
}

func (r *mutationResolver) SetBillingAccount(ctx context.Context, input billing.AccountInput) (*billing.Account, error) {
	return r.Billing.SetAccount(ctx, input)
}

func (r *mutationResolver) GrantCredit(ctx context.Context, input billing.GrantInput) (*billing.Grant, error) {
	return r.Billing.GrantCredit(ctx, input)
}

func (r *mutationResolver) ReopenPeriod(ctx context.Context, periodID ids.ID, planHash string, reason string) (*billing.Period, error) {
	return r.Billing.Reopen(ctx, periodID, planHash, reason)
}

func (r *queryResolver) Prices(ctx context.Context, filter *price.Filter, first *int, after *string) (*model.PriceConnection, error) {
	return read.ListOf[model.PriceConnection](ctx, read.Value(filter), first, after, r.Resolver.Prices.Versions)
}

func (r *queryResolver) BillingPeriods(ctx context.Context, tenantID ids.ID) ([]*billing.Period, error) {
	return r.Billing.Periods(ctx, tenantID)
}

func (r *queryResolver) BillingRuns(ctx context.Context, tenantID ids.ID, first *int, after *string) (*model.BillingRunConnection, error) {
	return read.ListOf[model.BillingRunConnection](ctx, tenantID, first, after, r.Billing.Runs)
}

func (r *queryResolver) VerifyBillingRun(ctx context.Context, id ids.ID) (*billing.Verification, error) {
	return r.Billing.Verify(ctx, id)
}

func (r *queryResolver) Statement(ctx context.Context, tenantID *ids.ID, projectID *ids.ID, periodID *ids.ID) (*billing.Statement, error) {
	return r.Billing.Statement(ctx, billing.Filter{TenantID: tenantID, ProjectID: projectID, PeriodID: periodID})
}

func (r *queryResolver) ExportStatement(ctx context.Context, tenantID *ids.ID, projectID *ids.ID, periodID *ids.ID, format rating.StatementFormat, focus string) (*export.Export, error) {
	return export.Statement(ctx, r.Billing, billing.Filter{TenantID: tenantID, ProjectID: projectID, PeriodID: periodID},
		format, focus)
}

func (r *queryResolver) ExplainLine(ctx context.Context, projectID ids.ID, periodID ids.ID, key string, records int) (*why.Explanation, error) {
	return why.Line(ctx, r.Billing.DB, why.Question{ProjectID: projectID, PeriodID: periodID, Key: key, Records: records})
}

func (r *queryResolver) CreditGrants(ctx context.Context, tenantID ids.ID) ([]*billing.Grant, error) {
	return r.Billing.Grants(ctx, tenantID)
}

func (r *queryResolver) PlanRerate(ctx context.Context, input price.VersionInput) (*billing.Plan, error) {
	return r.Billing.PlanRerate(ctx, input)
}

func (r *queryResolver) PlanReopenPeriod(ctx context.Context, periodID ids.ID) (*billing.Plan, error) {
	return r.Billing.PlanReopen(ctx, periodID)
}
