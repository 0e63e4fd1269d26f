package graph

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph/generated/exec"
	"github.com/gpuaas/app-platform/graph/generated/model"
)

func (r *appResolver) ActiveManifest(ctx context.Context, obj *db.App) (*db.Manifest, error) {
	panic(fmt.Errorf("not implemented: ActiveManifest - activeManifest"))
}

func (r *appResolver) Manifests(ctx context.Context, obj *db.App, first *int, after *string) (*model.ManifestConnection, error) {
	panic(fmt.Errorf("not implemented: Manifests - manifests"))
}

func (r *appResolver) Entitled(ctx context.Context, obj *db.App, projectID ids.ID) (bool, error) {
	panic(fmt.Errorf("not implemented: Entitled - entitled"))
}

func (r *artifactResolver) SizeBytes(ctx context.Context, obj *db.Artifact) (float64, error) {
	panic(fmt.Errorf("not implemented: SizeBytes - sizeBytes"))
}

func (r *manifestResolver) Document(ctx context.Context, obj *db.Manifest) (json.RawMessage, error) {
	panic(fmt.Errorf("not implemented: Document - document"))
}

func (r *manifestResolver) Compatibility(ctx context.Context, obj *db.Manifest) (json.RawMessage, error) {
	panic(fmt.Errorf("not implemented: Compatibility - compatibility"))
}

func (r *manifestResolver) ConfigSchema(ctx context.Context, obj *db.Manifest) (json.RawMessage, error) {
	panic(fmt.Errorf("not implemented: ConfigSchema - configSchema"))
}

func (r *manifestResolver) Components(ctx context.Context, obj *db.Manifest) ([]*model.ComponentSpec, error) {
	panic(fmt.Errorf("not implemented: Components - components"))
}

func (r *manifestResolver) Actions(ctx context.Context, obj *db.Manifest) ([]*model.ActionSpec, error) {
	panic(fmt.Errorf("not implemented: Actions - actions"))
}

func (r *manifestResolver) Artifacts(ctx context.Context, obj *db.Manifest) ([]*db.Artifact, error) {
	panic(fmt.Errorf("not implemented: Artifacts - artifacts"))
}

func (r *manifestResolver) Docs(ctx context.Context, obj *db.Manifest) (string, error) {
	panic(fmt.Errorf("not implemented: Docs - docs"))
}

func (r *mutationResolver) CreateApp(ctx context.Context, input model.CreateAppInput) (*db.App, error) {
	panic(fmt.Errorf("not implemented: CreateApp - createApp"))
}

func (r *mutationResolver) PublishArtifact(ctx context.Context, input model.PublishArtifactInput) (*db.Artifact, error) {
	panic(fmt.Errorf("not implemented: PublishArtifact - publishArtifact"))
}

func (r *mutationResolver) PromoteArtifact(ctx context.Context, input model.PromoteArtifactInput) (*db.Artifact, error) {
	panic(fmt.Errorf("not implemented: PromoteArtifact - promoteArtifact"))
}

func (r *mutationResolver) PublishManifest(ctx context.Context, input model.PublishManifestInput) (*db.Manifest, error) {
	panic(fmt.Errorf("not implemented: PublishManifest - publishManifest"))
}

func (r *mutationResolver) PromoteManifest(ctx context.Context, input model.PromoteManifestInput) (*db.Manifest, error) {
	panic(fmt.Errorf("not implemented: PromoteManifest - promoteManifest"))
}

func (r *mutationResolver) RegisterAdapter(ctx context.Context, input model.RegisterAdapterInput) (*db.Adapter, error) {
	panic(fmt.Errorf("not implemented: RegisterAdapter - registerAdapter"))
}

func (r *mutationResolver) GrantEntitlement(ctx context.Context, projectID ids.ID, appSlug string) (*db.Entitlement, error) {
	panic(fmt.Errorf("not implemented: GrantEntitlement - grantEntitlement"))
}

func (r *mutationResolver) RevokeEntitlement(ctx context.Context, projectID ids.ID, appSlug string, reason *string) (*db.Entitlement, error) {
	panic(fmt.Errorf("not implemented: RevokeEntitlement - revokeEntitlement"))
}

func (r *queryResolver) Apps(ctx context.Context, search *string, first *int, after *string) (*model.AppConnection, error) {
	panic(fmt.Errorf("not implemented: Apps - apps"))
}

func (r *queryResolver) App(ctx context.Context, slug string) (*db.App, error) {
	panic(fmt.Errorf("not implemented: App - app"))
}

func (r *queryResolver) LintManifest(ctx context.Context, document json.RawMessage) (*model.LintResult, error) {
	panic(fmt.Errorf("not implemented: LintManifest - lintManifest"))
}

func (r *queryResolver) Artifacts(ctx context.Context, first *int, after *string) (*model.ArtifactConnection, error) {
	panic(fmt.Errorf("not implemented: Artifacts - artifacts"))
}

func (r *queryResolver) Adapters(ctx context.Context, first *int, after *string) (*model.AdapterRegistrationConnection, error) {
	panic(fmt.Errorf("not implemented: Adapters - adapters"))
}

func (r *Resolver) App() exec.AppResolver { return &appResolver{r} }

func (r *Resolver) Artifact() exec.ArtifactResolver { return &artifactResolver{r} }

func (r *Resolver) Manifest() exec.ManifestResolver { return &manifestResolver{r} }

type (
	appResolver      struct{ *Resolver }
	artifactResolver struct{ *Resolver }
	manifestResolver struct{ *Resolver }
)
