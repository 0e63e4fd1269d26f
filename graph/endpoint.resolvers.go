package graph

import (
	"context"

	"github.com/gpuaas/app-platform/service/endpoint"
	"github.com/gpuaas/app-platform/service/instance"
)

func (r *instanceResolver) Endpoints(ctx context.Context, obj *instance.View) ([]*endpoint.View, error) {
	stored, err := r.Manifest(ctx, obj)
	if err != nil {
		return nil, err
	}
	counts, err := obj.Roles()
	if err != nil {
		return nil, err
	}
	return r.Resolver.Endpoints.Of(obj.Instance, stored, counts)
}

func (r *mutationResolver) OpenEndpoint(ctx context.Context, input endpoint.OpenInput) (*endpoint.Opened, error) {
	return r.Resolver.Endpoints.Open(ctx, input)
}
