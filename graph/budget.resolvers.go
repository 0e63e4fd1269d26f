package graph

import (
	"context"
	"github.com/gpuaas/app-platform/graph/read"
	"time"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/spending"
	"github.com/gpuaas/app-platform/service/budget"
)

func (r *mutationResolver) SetBudget(ctx context.Context, input budget.SetInput) (*budget.Budget, error) {
	return r.Resolver.Budgets.Set(ctx, input)
}

func (r *mutationResolver) RemoveBudget(ctx context.Context, budgetID ids.ID, reason string) (*budget.Budget, error) {
	return r.Resolver.Budgets.Remove(ctx, budgetID, reason)
}

func (r *queryResolver) Budgets(ctx context.Context, tenantID *ids.ID, projectID *ids.ID) ([]*budget.Budget, error) {
	return r.Resolver.Budgets.List(ctx, tenantID, projectID)
}

func (r *queryResolver) Costs(ctx context.Context, tenantID *ids.ID, projectID *ids.ID, by spending.By, label *string, from *time.Time, to *time.Time) ([]*budget.Share, error) {
	return r.Resolver.Budgets.Costs(ctx, budget.CostFilter{TenantID: tenantID, ProjectID: projectID, By: by,
		Label: read.Value(label), From: from, To: to})
}

func (r *queryResolver) CostSummary(ctx context.Context, tenantID *ids.ID, projectID *ids.ID) (*budget.Summary, error) {
	return r.Resolver.Budgets.Summarise(ctx, tenantID, projectID)
}
