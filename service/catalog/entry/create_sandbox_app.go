package entry

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/idem"
	"github.com/gpuaas/app-platform/service/kit/overlay"
	"github.com/gpuaas/app-platform/service/kit/sandbox"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// CreateSandboxAppInput is the input for a publisher's own app.
type CreateSandboxAppInput struct {
	ProjectID                                                    ids.ID
	Slug, DisplayName, Summary, PermissionFamily, IdempotencyKey string
}

// CreateSandboxApp adds an app that only the project may launch and only its tenant sees. It entitles the project. Key:
// sandbox.manage on the project.
//
// Faults: INVALID_ARGUMENT naming the field, NOT_FOUND, FORBIDDEN, CONFLICT when the short name is taken,
// LIMIT_EXCEEDED beyond sandbox.Most apps of the tenant, IDEMPOTENCY_KEY_REUSED.
func (s *Service) CreateSandboxApp(ctx context.Context, in CreateSandboxAppInput) (out *db.App, err error) {
	entry := CreateAppInput{Slug: in.Slug, DisplayName: in.DisplayName, Summary: in.Summary,
		PermissionFamily: in.PermissionFamily, PublisherProjectID: &in.ProjectID}
	if err := entry.check(); err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		out, err = createSandboxApp(ctx, t, in)
		return err
	})
	return out, err
}

const sandboxing = "createSandboxApp"

func createSandboxApp(ctx context.Context, t *tx.Tx, in CreateSandboxAppInput) (*db.App, error) {
	place, err := authorised(ctx, t, in.ProjectID)
	if err != nil {
		return nil, err
	}
	made := made{ID: ids.New(ids.App)}
	repeated, err := idem.Claim(ctx, t, idem.Key{Verb: sandboxing, TenantID: place.TenantID, ProjectID: place.ProjectID,
		Value: in.IdempotencyKey, Input: in}, &made)
	if err != nil {
		return nil, err
	}
	if repeated {
		return t.App.Get(ctx, made.ID)
	}
	if err := place.Named(in.Slug, "input.slug"); err != nil {
		return nil, err
	}
	err = place.Room(ctx, t, "apps", `SELECT count(*) FROM app WHERE sandbox AND publisher_tenant_id = $1`)
	if err != nil {
		return nil, err
	}
	row, err := t.App.Create().SetID(made.ID).SetSlug(in.Slug).SetDisplayName(in.DisplayName).SetSummary(in.Summary).
		SetPermissionFamily(in.PermissionFamily).SetPublisherTenantID(place.TenantID).
		SetPublisherProjectID(place.ProjectID).
		SetSandbox(true).SetCreatedAt(t.Now).Save(ctx)
	if tx.Violates(err, "app_slug_key") {
		return nil, fault.New(fault.Conflict, "the name %q is taken", in.Slug).At("input.slug").Retry(false)
	}
	if err != nil {
		return nil, fmt.Errorf("create app: %w", err)
	}
	if err := entitle(ctx, t, place, in.Slug); err != nil {
		return nil, err
	}
	return row, audit.Write(ctx, t, audit.Entry{Action: sandboxing, Key: authz.SandboxManage, Object: place.Object,
		ObjectID: row.ID, After: map[string]any{"slug": in.Slug, "displayName": in.DisplayName,
			"permissionFamily": in.PermissionFamily, "entitled": place.ProjectID}})
}

// authorised requires sandbox.manage on the project. NOT_FOUND for one that the caller cannot see.
func authorised(ctx context.Context, t *tx.Tx, projectID ids.ID) (sandbox.Place, error) {
	place, err := sandbox.Of(ctx, t, projectID)
	if err != nil {
		return place, err
	}
	if place.ProjectID == "" {
		return place, audit.Missing(t, sandboxing, authz.SandboxManage, projectID)
	}
	return place, audit.Require(t, sandboxing, authz.SandboxManage, place.Object, projectID)
}

// entitle lets the app's own project launch it. Policy narrows it as it narrows every launch, and a manager of
// entitlements may revoke it.
func entitle(ctx context.Context, t *tx.Tx, place sandbox.Place, slug string) error {
	if err := overlay.Lock(ctx, t, place.ProjectID, true); err != nil {
		return err
	}
	_, err := t.Entitlement.Create().SetID(ids.New(ids.Entitlement)).SetTenantID(place.TenantID).
		SetProjectID(place.ProjectID).SetAppSlug(slug).SetGrantedBy(string(t.Actor.ID)).
		SetReason("the project's own app, in its sandbox").SetCreatedAt(t.Now).Save(ctx)
	if err != nil {
		return fmt.Errorf("entitle %s: %w", place.ProjectID, err)
	}
	return nil
}
