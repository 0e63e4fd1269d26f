package graph

import (
	"context"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/graph/read"
	"github.com/gpuaas/app-platform/service/instance"
)

// instance reads an instance with the neighbours that the selection contains, and hands those to the loaders of the
// fields below.
func (r *Resolver) instance(ctx context.Context, id ids.ID) (*instance.View, error) {
	view, err := r.Instances.Get(ctx, id, read.Wanted(ctx))
	if err != nil {
		return nil, err
	}
	read.Prime(ctx, view.Loaded)
	return view, nil
}
