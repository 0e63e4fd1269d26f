package graph

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/manifest"
	"github.com/gpuaas/app-platform/domain/rollout"
	"github.com/gpuaas/app-platform/domain/volume"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph/generated/exec"
	"github.com/gpuaas/app-platform/graph/generated/model"
	"github.com/gpuaas/app-platform/graph/read"
	"github.com/gpuaas/app-platform/graph/shape"
	"github.com/gpuaas/app-platform/service/adapter"
	"github.com/gpuaas/app-platform/service/artifact"
	"github.com/gpuaas/app-platform/service/catalog"
	"github.com/gpuaas/app-platform/service/catalog/entry"
	"github.com/gpuaas/app-platform/service/entitlement"
	"github.com/gpuaas/app-platform/service/kit/page"
)

func (r *appResolver) Icon(ctx context.Context, obj *db.App) (string, error) {
	return read.Of(ctx).Icons.Load(ctx, obj.Slug)
}

func (r *appResolver) ActiveManifest(ctx context.Context, obj *db.App) (*db.Manifest, error) {
	return read.Maybe(ctx, read.Of(ctx).Active, &obj.Slug)
}

func (r *appResolver) CanaryManifest(ctx context.Context, obj *db.App) (*db.Manifest, error) {
	return read.Maybe(ctx, read.Of(ctx).Canary, &obj.Slug)
}

func (r *appResolver) Manifests(ctx context.Context, obj *db.App, first *int, after *string) (*model.ManifestConnection, error) {
	args, err := page.Of(first, after, read.ShortPage, page.Max)
	if err != nil {
		return nil, err
	}
	return read.Connection[model.ManifestConnection](r.Catalog.Manifests(ctx, obj.Slug, args))
}

func (r *appResolver) PromotionTerms(ctx context.Context, obj *db.App) (*rollout.Terms, error) {
	terms, err := rollout.TermsOf(obj.PromotionTerms)
	return &terms, err
}

func (r *appResolver) Entitled(ctx context.Context, obj *db.App, projectID ids.ID) (bool, error) {
	return read.Of(ctx).Entitled.Load(ctx, read.Launch{Project: projectID, App: obj.Slug})
}

func (r *artifactResolver) SizeBytes(ctx context.Context, obj *db.Artifact) (float64, error) {
	return float64(obj.SizeBytes), nil
}

func (r *artifactResolver) Source(ctx context.Context, obj *db.Artifact) (*db.ArtifactSource, error) {
	return read.Maybe(ctx, read.Of(ctx).Sources, obj.SourceID)
}

func (r *artifactResolver) Parts(ctx context.Context, obj *db.Artifact) ([]*db.ArtifactPart, error) {
	return read.Many(ctx, read.Of(ctx).Parts, obj.ID)
}

func (r *artifactResolver) SignedBy(ctx context.Context, obj *db.Artifact) (*db.SignerKey, error) {
	return read.Maybe(ctx, read.Of(ctx).Signer, obj.SignerKeyID)
}

func (r *artifactResolver) PinnedBy(ctx context.Context, obj *db.Artifact) ([]*db.Manifest, error) {
	return read.Many(ctx, read.Of(ctx).PinnedBy, obj.ID)
}

func (r *artifactResolver) History(ctx context.Context, obj *db.Artifact) ([]*db.Promotion, error) {
	return read.Many(ctx, read.Of(ctx).History, obj.ID)
}

func (r *artifactResolver) Smokes(ctx context.Context, obj *db.Artifact) ([]*db.ArtifactSmoke, error) {
	return read.Many(ctx, read.Of(ctx).Smokes, obj.ID)
}

func (r *artifactResolver) Smoked(ctx context.Context, obj *db.Artifact) (bool, error) {
	return read.Of(ctx).Smoked.Load(ctx, obj.ID)
}

func (r *manifestResolver) Document(ctx context.Context, obj *db.Manifest) (json.RawMessage, error) {
	return obj.Document, nil
}

func (r *manifestResolver) Compatibility(ctx context.Context, obj *db.Manifest) (out json.RawMessage, err error) {
	err = shape.Within(obj, "compatibility", &out)
	return out, err
}

func (r *manifestResolver) ConfigSchema(ctx context.Context, obj *db.Manifest) (out json.RawMessage, err error) {
	err = shape.Within(obj, "configSchema", &out)
	return out, err
}

func (r *manifestResolver) Components(ctx context.Context, obj *db.Manifest) ([]*model.ComponentSpec, error) {
	var components []manifest.Component
	err := shape.Within(obj, "components", &components)
	return shape.Components(components), err
}

func (r *manifestResolver) Volumes(_ context.Context, obj *db.Manifest) ([]*manifest.VolumeSlot, error) {
	slots := []*manifest.VolumeSlot{}
	err := shape.Within(obj, "volumes", &slots)
	for _, slot := range slots {
		slot.Access = cmp.Or(slot.Access, volume.ReadWrite)
	}
	return slots, err
}

func (r *manifestResolver) Actions(ctx context.Context, obj *db.Manifest) ([]*model.ActionSpec, error) {
	var actions []manifest.Action
	err := shape.Within(obj, "actions", &actions)
	return shape.Actions(actions), err
}

func (r *manifestResolver) Work(_ context.Context, obj *db.Manifest) (out *manifest.Work, err error) {
	err = shape.Within(obj, "work", &out)
	return out, err
}

func (r *manifestResolver) Artifacts(ctx context.Context, obj *db.Manifest) ([]*db.Artifact, error) {
	return read.Many(ctx, read.Of(ctx).Artifacts, obj.ID)
}

func (r *manifestResolver) Docs(ctx context.Context, obj *db.Manifest) (out string, err error) {
	err = shape.Within(obj, "docs", &out)
	return out, err
}

func (r *manifestResolver) Lifecycle(ctx context.Context, obj *db.Manifest) (json.RawMessage, error) {
	var out json.RawMessage
	err := shape.Within(obj, "lifecycle", &out)
	return out, err
}

func (r *manifestResolver) Runbooks(ctx context.Context, obj *db.Manifest) ([]*manifest.Runbook, error) {
	out := []*manifest.Runbook{}
	err := shape.Within(obj, "runbooks", &out)
	for _, one := range out {
		if one.Triage == nil {
			one.Triage = []manifest.TriageStep{}
		}
	}
	return out, err
}

func (r *manifestResolver) Reports(ctx context.Context, obj *db.Manifest) ([]*db.PromotionEvidence, error) {
	return read.Many(ctx, read.Of(ctx).Reports, obj.ID)
}

func (r *manifestResolver) History(ctx context.Context, obj *db.Manifest) ([]*db.Promotion, error) {
	return read.Many(ctx, read.Of(ctx).History, obj.ID)
}

func (r *manifestResolver) Lacks(ctx context.Context, obj *db.Manifest) ([]*fault.Reason, error) {
	return read.Many(ctx, read.Of(ctx).Lacks, obj.ID)
}

func (r *mutationResolver) CreateApp(ctx context.Context, input entry.CreateAppInput) (*db.App, error) {
	return r.Entries.CreateApp(ctx, input)
}

func (r *mutationResolver) CreateSandboxApp(ctx context.Context, input entry.CreateSandboxAppInput) (*db.App, error) {
	return r.Entries.CreateSandboxApp(ctx, input)
}

func (r *mutationResolver) OpenApp(ctx context.Context, input entry.OpenAppInput) (*db.App, error) {
	return r.Entries.OpenApp(ctx, input)
}

func (r *mutationResolver) PublishArtifact(ctx context.Context, input artifact.PublishArtifactInput) (*db.Artifact, error) {
	return r.Artifacts.PublishArtifact(ctx, input)
}

func (r *mutationResolver) PromoteArtifact(ctx context.Context, input artifact.PromoteArtifactInput) (*db.Artifact, error) {
	return r.Artifacts.PromoteArtifact(ctx, input)
}

func (r *mutationResolver) VerifyArtifact(ctx context.Context, artifactID ids.ID) (*db.Artifact, error) {
	return r.Artifacts.Verify(ctx, artifactID)
}

func (r *mutationResolver) QuarantineArtifact(ctx context.Context, artifactID ids.ID, reason string) (*db.Artifact, error) {
	return r.Artifacts.Quarantine(ctx, artifactID, reason)
}

func (r *mutationResolver) ReleaseArtifact(ctx context.Context, artifactID ids.ID, reason string) (*db.Artifact, error) {
	return r.Artifacts.Release(ctx, artifactID, reason)
}

func (r *mutationResolver) PublishManifest(ctx context.Context, input catalog.PublishManifestInput) (*db.Manifest, error) {
	return r.Catalog.PublishManifest(ctx, input)
}

func (r *mutationResolver) PromoteManifest(ctx context.Context, input catalog.PromoteManifestInput) (*db.Manifest, error) {
	return r.Catalog.PromoteManifest(ctx, input)
}

func (r *mutationResolver) RegisterAdapter(ctx context.Context, input adapter.RegisterInput) (*db.Adapter, error) {
	return r.Adapters.Register(ctx, input)
}

func (r *mutationResolver) RegisterSandboxAdapter(ctx context.Context, input adapter.SandboxInput) (*db.Adapter, error) {
	return r.Adapters.RegisterSandbox(ctx, input)
}

func (r *mutationResolver) GrantEntitlement(ctx context.Context, projectID ids.ID, appSlug string, limits *entitlement.Limits, expiresAt *time.Time, reason *string) (*db.Entitlement, error) {
	return r.Entitlements.GrantEntitlement(ctx, entitlement.GrantInput{
		ProjectID: projectID, AppSlug: appSlug, Limits: read.Value(limits), ExpiresAt: expiresAt, Reason: read.Value(reason),
	})
}

func (r *mutationResolver) RevokeEntitlement(ctx context.Context, projectID ids.ID, appSlug string, reason *string) (*db.Entitlement, error) {
	return r.Entitlements.RevokeEntitlement(ctx, projectID, appSlug, read.Value(reason))
}

func (r *queryResolver) Entitlements(ctx context.Context, projectID ids.ID, ended bool, first *int, after *string) (*model.EntitlementConnection, error) {
	args, err := page.Of(first, after, read.StandardPage, page.Max)
	if err != nil {
		return nil, err
	}
	return read.Connection[model.EntitlementConnection](r.Resolver.Entitlements.Entitlements(ctx, projectID, ended, args))
}

func (r *queryResolver) Apps(ctx context.Context, search *string, system *bool, first *int, after *string) (*model.AppConnection, error) {
	args, err := page.Of(first, after, read.StandardPage, page.Max)
	if err != nil {
		return nil, err
	}
	return read.Connection[model.AppConnection](r.Catalog.Apps(ctx, read.Value(search), system, args))
}

func (r *queryResolver) App(ctx context.Context, slug string) (*db.App, error) {
	return r.Catalog.App(ctx, slug)
}

func (r *queryResolver) LintManifest(ctx context.Context, document json.RawMessage) (*model.LintResult, error) {
	reasons, err := r.Catalog.LintManifest(ctx, document)
	if err != nil {
		return nil, err
	}
	return &model.LintResult{Ok: len(reasons) == 0, Reasons: shape.Pointers(reasons)}, nil
}

func (r *queryResolver) Manifests(ctx context.Context, search *string, appSlug *string, stages []lifecycle.Stage, first *int, after *string) (*model.ManifestConnection, error) {
	args, err := page.Of(first, after, read.StandardPage, page.Max)
	if err != nil {
		return nil, err
	}
	return read.Connection[model.ManifestConnection](r.Catalog.ManifestList(ctx,
		catalog.ManifestFilter{Search: read.Value(search), AppSlug: read.Value(appSlug), Stages: stages}, args))
}

func (r *queryResolver) Artifact(ctx context.Context, digest string, tenantID *ids.ID) (*db.Artifact, error) {
	return r.Resolver.Artifacts.ByDigest(ctx, digest, tenantID)
}

func (r *queryResolver) Artifacts(ctx context.Context, search *string, stages []lifecycle.Stage, quarantined *bool, first *int, after *string) (*model.ArtifactConnection, error) {
	args, err := page.Of(first, after, read.StandardPage, page.Max)
	if err != nil {
		return nil, err
	}
	return read.Connection[model.ArtifactConnection](r.Resolver.Artifacts.Artifacts(ctx,
		artifact.Filter{Search: read.Value(search), Stages: stages, Quarantined: quarantined}, args))
}

func (r *queryResolver) Adapters(ctx context.Context, projectID *ids.ID, first *int, after *string) (*model.AdapterRegistrationConnection, error) {
	list := r.Resolver.Adapters.Adapters
	if projectID != nil {
		list = r.Resolver.Adapters.InSandbox(*projectID)
	}
	return read.List[model.AdapterRegistrationConnection](ctx, first, after, read.StandardPage, list)
}

func (r *Resolver) App() exec.AppResolver { return &appResolver{r} }

func (r *Resolver) Artifact() exec.ArtifactResolver { return &artifactResolver{r} }

func (r *Resolver) Manifest() exec.ManifestResolver { return &manifestResolver{r} }

type (
	appResolver      struct{ *Resolver }
	artifactResolver struct{ *Resolver }
	manifestResolver struct{ *Resolver }
)
