package graph

import (
	"context"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/graph/books"
	"github.com/gpuaas/app-platform/graph/generated/exec"
	"github.com/gpuaas/app-platform/graph/generated/model"
	"github.com/gpuaas/app-platform/graph/people"
	"github.com/gpuaas/app-platform/graph/readiness"
	"github.com/gpuaas/app-platform/graph/storage"
	"github.com/gpuaas/app-platform/service/identity"
	"github.com/gpuaas/app-platform/service/volume"
)

func (r *queryResolver) Node(ctx context.Context, id ids.ID) (model.Node, error) {
	return r.nodeReads().Node(ctx, r.DB, id)
}

// Viewer is said here, since the root has the resolver of its fields by the same name.
func (r *queryResolver) Viewer(ctx context.Context) (*identity.Viewer, error) {
	return r.Queries.Viewer(ctx)
}

// Volume is said here, since the root has the resolver of its fields by the same name.
func (r *queryResolver) Volume(ctx context.Context, id ids.ID) (*volume.Volume, error) {
	return r.Views.One(ctx, id)
}

func (r *reasonResolver) Code(ctx context.Context, obj *fault.Reason) (string, error) {
	return string(obj.Code), nil
}

func (r *Resolver) Mutation() exec.MutationResolver {
	return &mutationResolver{r, people.NewMutations(r.Identity), books.NewWrites(r.Billing, r.Prices, r.Usage),
		readiness.Verbs{Checks: r.Readiness, Log: r.GapLog}, storage.NewChanges(r.Storage)}
}

func (r *Resolver) Query() exec.QueryResolver {
	return &queryResolver{r, people.NewQueries(r.Identity, r.Explain), books.NewReads(r.Billing, r.Usage),
		readiness.Lookups{Checks: r.Readiness, Log: r.GapLog}, storage.NewViews(r.Storage)}
}

func (r *Resolver) Reason() exec.ReasonResolver { return &reasonResolver{r} }

func (r *Resolver) ServiceAccount() exec.ServiceAccountResolver { return people.ServiceAccounts{} }

func (r *Resolver) StorageClass() exec.StorageClassResolver { return storage.Classes{} }

func (r *Resolver) StorageOffer() exec.StorageOfferResolver { return storage.Offers{} }

func (r *Resolver) Volume() exec.VolumeResolver { return storage.Volumes{} }

func (r *Resolver) VolumePlan() exec.VolumePlanResolver { return storage.Plans{} }

func (r *Resolver) User() exec.UserResolver { return people.Users{} }

func (r *Resolver) Viewer() exec.ViewerResolver { return people.NewViewer(r.Identity) }

func (r *Resolver) Subscription() exec.SubscriptionResolver { return &subscriptionResolver{r} }

type (
	mutationResolver struct {
		*Resolver
		people.Mutations
		books.Writes
		readiness.Verbs
		storage.Changes
	}
	queryResolver struct {
		*Resolver
		people.Queries
		books.Reads
		readiness.Lookups
		storage.Views
	}
	reasonResolver       struct{ *Resolver }
	subscriptionResolver struct{ *Resolver }
)
