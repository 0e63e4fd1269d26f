package graph

import (
	"context"

	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph/generated/exec"
	"github.com/gpuaas/app-platform/graph/read"
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

func (r *memberResolver) Endpoints(ctx context.Context, obj *db.Member) ([]*endpoint.View, error) {
	of, err := read.Of(ctx).Instances.Load(ctx, obj.InstanceID)
	if err != nil || of == nil {
		return nil, err
	}
	all, err := (&instanceResolver{r.Resolver}).Endpoints(ctx, of)
	return endpoint.At(all, obj), err
}

func (r *endpointResolver) Health(ctx context.Context, obj *endpoint.View) (*endpoint.Health, error) {
	if err := read.Of(ctx).CountTries(); err != nil {
		return nil, err
	}
	return r.Resolver.Endpoints.Health(ctx, obj)
}

func (r *mutationResolver) OpenEndpoint(ctx context.Context, input endpoint.OpenInput) (*endpoint.Opened, error) {
	return r.Resolver.Endpoints.Open(ctx, input)
}

func (r *mutationResolver) IssueSSHCertificate(ctx context.Context, input endpoint.CertificateInput) (*endpoint.Certified, error) {
	return r.Resolver.Endpoints.Certify(ctx, input)
}

func (r *mutationResolver) IssueSSHHostCertificate(ctx context.Context, input endpoint.HostCertificateInput) (
	*endpoint.HostCertified, error) {
	return r.Resolver.Endpoints.CertifyHost(ctx, input)
}

// Endpoint resolves endpoints.
func (r *Resolver) Endpoint() exec.EndpointResolver { return &endpointResolver{r} }

type endpointResolver struct{ *Resolver }
