package graph

import (
	"context"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph/generated/exec"
	"github.com/gpuaas/app-platform/graph/generated/model"
	"github.com/gpuaas/app-platform/graph/read"
	"github.com/gpuaas/app-platform/service/source"
)

func (r *artifactSourceResolver) Keys(ctx context.Context, obj *db.ArtifactSource) ([]*db.SignerKey, error) {
	return read.Many(ctx, read.Of(ctx).Signers, obj.ID)
}

func (r *mutationResolver) CreateArtifactSource(ctx context.Context, input source.CreateInput) (*db.ArtifactSource, error) {
	return r.ArtifactSources.Create(ctx, input)
}

func (r *mutationResolver) UpdateArtifactSource(ctx context.Context, input source.UpdateInput) (*db.ArtifactSource, error) {
	return r.ArtifactSources.Update(ctx, input)
}

func (r *mutationResolver) SetSourceCredential(ctx context.Context, input source.CredentialInput) (*db.ArtifactSource, error) {
	return r.ArtifactSources.SetCredential(ctx, input)
}

func (r *mutationResolver) AddSignerKey(ctx context.Context, input source.KeyInput) (*db.SignerKey, error) {
	return r.ArtifactSources.AddKey(ctx, input)
}

func (r *mutationResolver) RevokeSignerKey(ctx context.Context, keyID ids.ID, reason string) (*db.SignerKey, error) {
	return r.ArtifactSources.RevokeKey(ctx, keyID, reason)
}

func (r *queryResolver) ArtifactSources(ctx context.Context, tenantID *ids.ID, first *int, after *string) (*model.ArtifactSourceConnection, error) {
	return read.ListOf[model.ArtifactSourceConnection](ctx, tenantID, first, after, r.Resolver.ArtifactSources.List)
}

func (r *Resolver) ArtifactSource() exec.ArtifactSourceResolver { return &artifactSourceResolver{r} }

type artifactSourceResolver struct{ *Resolver }
