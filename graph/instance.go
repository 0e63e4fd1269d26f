package graph

import (
	"context"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph/generated/model"
	"github.com/gpuaas/app-platform/graph/read"
	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// instance reads an instance with the neighbours that the selection contains, and hands those to the loaders of the
// fields below.
func (r *Resolver) instance(ctx context.Context, id ids.ID) (*instance.View, error) {
	view, err := r.Instances.Get(ctx, id, read.Wanted(ctx))
	if err != nil {
		return nil, err
	}
	read.Of(ctx).Prime(view.Loaded)
	return view, nil
}

// members returns the page that was read along with the instance where the arguments are the same.
func (r *Resolver) members(ctx context.Context, view *instance.View, args page.Args) (*page.Page[*db.Member], error) {
	if view.Loaded != nil && view.Loaded.Members != nil && view.Loaded.MembersArgs == args {
		return view.Loaded.Members, nil
	}
	return r.Instances.Members(ctx, view.ID, args)
}

// events returns the page that was read along with the instance where the arguments are the same.
func (r *Resolver) events(ctx context.Context, view *instance.View, args page.Args) (*page.Page[*event.Event], error) {
	if view.Loaded != nil && view.Loaded.Events != nil && view.Loaded.EventsArgs == args {
		return view.Loaded.Events, nil
	}
	return r.Instances.Events(ctx, view.ID, args)
}

// operations returns a page of operations.
func (r *Resolver) operations(
	ctx context.Context, filter operation.Filter, first *int, after *string, standard int,
) (*model.OperationConnection, error) {
	args, err := page.Of(first, after, standard, page.Max)
	if err != nil {
		return nil, err
	}
	return read.Connection[model.OperationConnection](operation.List(ctx, r.DB, filter, args))
}

// value returns what a nullable argument holds, or the zero value.
func value[T any](v *T) T {
	if v == nil {
		var zero T
		return zero
	}
	return *v
}
