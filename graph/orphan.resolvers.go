package graph

import (
	"context"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/money"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph/generated/exec"
	"github.com/gpuaas/app-platform/graph/generated/model"
	"github.com/gpuaas/app-platform/graph/read"
	"github.com/gpuaas/app-platform/service/identity"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/service/orphan"
	"github.com/gpuaas/app-platform/service/price"
)

func (r *mutationResolver) RetryOrphan(ctx context.Context, orphanID ids.ID) (*orphan.View, error) {
	return r.Resolver.Orphans.Retry(ctx, orphanID)
}

func (r *mutationResolver) SetSkuPrice(ctx context.Context, input price.SetInput) (*db.SKUPrice, error) {
	return r.Prices.Set(ctx, input)
}

func (r *mutationResolver) SetProjectQuota(ctx context.Context, input identity.QuotaInput) (*db.Project, error) {
	return r.Identity.SetQuota(ctx, input)
}

func (r *orphanResolver) Operation(ctx context.Context, obj *orphan.View) (*operation.View, error) {
	return read.Maybe(ctx, read.Of(ctx).Operations, obj.OperationID)
}

func (r *orphanResolver) Member(ctx context.Context, obj *orphan.View) (*db.Member, error) {
	return read.Maybe(ctx, read.Of(ctx).Members, obj.MemberID)
}

func (r *orphanResolver) Node(ctx context.Context, obj *orphan.View) (*db.ComputeNode, error) {
	return read.Maybe(ctx, read.Of(ctx).Nodes, obj.NodeID)
}

func (r *orphanResolver) Allocation(ctx context.Context, obj *orphan.View) (*db.Allocation, error) {
	return read.Maybe(ctx, read.Of(ctx).Allocations, obj.AllocationID)
}

func (r *queryResolver) Orphans(ctx context.Context, projectID ids.ID, resolved bool, first *int, after *string) (*model.OrphanConnection, error) {
	args, err := page.Of(first, after, read.StandardPage, page.Max)
	if err != nil {
		return nil, err
	}
	return read.Connection[model.OrphanConnection](r.Resolver.Orphans.List(ctx,
		orphan.Filter{ProjectID: projectID, Resolved: resolved}, args))
}

func (r *queryResolver) SkuPrices(ctx context.Context) ([]*db.SKUPrice, error) {
	return r.Resolver.Prices.List(ctx)
}

func (r *skuPriceResolver) Hourly(ctx context.Context, obj *db.SKUPrice) (*orphan.Money, error) {
	return orphan.MoneyOf(obj.Currency, money.Shift(obj.HourlyMicros, 6)), nil
}

func (r *Resolver) Orphan() exec.OrphanResolver { return &orphanResolver{r} }

func (r *Resolver) SkuPrice() exec.SkuPriceResolver { return &skuPriceResolver{r} }

type (
	orphanResolver   struct{ *Resolver }
	skuPriceResolver struct{ *Resolver }
)
