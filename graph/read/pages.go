package read

import (
	"context"

	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph/generated/model"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// Members returns the page that was read along with the instance where the arguments are the same.
func Members(ctx context.Context, s *instance.Service, view *instance.View,
	args page.Args) (*page.Page[*db.Member], error) {
	if view.Loaded != nil && view.Loaded.Members != nil && view.Loaded.MembersArgs == args {
		return view.Loaded.Members, nil
	}
	return s.Members(ctx, view.ID, args)
}

// Events returns the page that was read along with the instance where the arguments are the same.
func Events(ctx context.Context, s *instance.Service, view *instance.View,
	args page.Args) (*page.Page[*event.Event], error) {
	if view.Loaded != nil && view.Loaded.Events != nil && view.Loaded.EventsArgs == args {
		return view.Loaded.Events, nil
	}
	return s.Events(ctx, view.ID, args)
}

// Operations returns a page of operations.
func Operations(
	ctx context.Context, from *tx.DB, filter operation.Filter, first *int, after *string, standard int,
) (*model.OperationConnection, error) {
	args, err := page.Of(first, after, standard, page.Max)
	if err != nil {
		return nil, err
	}
	return Connection[model.OperationConnection](operation.List(ctx, from, filter, args))
}
