package graph

import (
	"context"

	"github.com/gpuaas/app-platform/graph/generated/model"
	"github.com/gpuaas/app-platform/graph/read"
	"github.com/gpuaas/app-platform/service/price"
)

// Prices is said here, since the root has the verbs on list prices by the same name.
func (r *queryResolver) Prices(ctx context.Context, filter *price.Filter, first *int, after *string) (*model.PriceConnection, error) {
	return read.ListOf[model.PriceConnection](ctx, read.Value(filter), first, after, r.Resolver.Prices.Versions)
}
