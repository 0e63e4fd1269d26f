// Package entry holds the verbs that make entries of the catalog: apps are created by the platform's staff, or by a
// publisher in a sandbox, and opened to others.
package entry

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/ent/generated/db/project"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/kit/idem"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// Service holds the verbs on the catalog's entries.
type Service struct {
	DB *tx.DB
}

// made is what an idempotency key stores.
type made struct {
	ID ids.ID `json:"id"`
}

// CreateAppInput is the input for a new app.
type CreateAppInput struct {
	Slug, DisplayName, Summary, PermissionFamily, IdempotencyKey string
	// nil for the platform alone
	PublisherProjectID *ids.ID `json:",omitempty"`
	// System marks an app that the operator runs for the platform.
	System bool `json:",omitempty"`
}

func (in CreateAppInput) check() error {
	var input check.Input
	input.Slug("input.slug", in.Slug)
	input.Text("input.displayName", in.DisplayName, 1, 100)
	input.Text("input.summary", in.Summary, 0, 200)
	if !slices.Contains(authz.Families(), in.PermissionFamily) {
		input.Bad("input.permissionFamily", "%s", strings.Join(authz.Families(), " or "))
	}
	return input.Err()
}

// CreateApp adds an app to the catalog. Key: app.manage on the platform. CONFLICT when the short
// name is taken, NOT_FOUND at input.publisherProjectId.
func (s *Service) CreateApp(ctx context.Context, in CreateAppInput) (out *db.App, err error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		out, err = createApp(ctx, t, in)
		return err
	})
	return out, err
}

func createApp(ctx context.Context, t *tx.Tx, in CreateAppInput) (*db.App, error) {
	const action = "createApp"
	if err := audit.Require(t, action, authz.AppManage, authz.Object{}, ""); err != nil {
		return nil, ownInstead(err)
	}
	made := made{ID: ids.New(ids.App)}
	repeated, err := idem.Claim(ctx, t, idem.Key{Verb: action, Value: in.IdempotencyKey, Input: in}, &made)
	if err != nil {
		return nil, err
	}
	if repeated {
		return t.App.Get(ctx, made.ID)
	}
	publisher, err := publisherOf(ctx, t, in.PublisherProjectID)
	if err != nil {
		return nil, err
	}
	row, err := t.App.Create().SetID(made.ID).SetSlug(in.Slug).SetDisplayName(in.DisplayName).SetSummary(in.Summary).
		SetPermissionFamily(in.PermissionFamily).SetNillablePublisherTenantID(publisher).
		SetNillablePublisherProjectID(in.PublisherProjectID).SetSystem(in.System).SetCreatedAt(t.Now).Save(ctx)
	if tx.Violates(err, "app_slug_key") {
		return nil, fault.New(fault.Conflict, "an app %q exists already", in.Slug).At("input.slug").Retry(false)
	}
	if err != nil {
		return nil, fmt.Errorf("create app: %w", err)
	}
	return row, audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.AppManage, ObjectID: row.ID,
		After: map[string]any{"slug": in.Slug, "displayName": in.DisplayName, "permissionFamily": in.PermissionFamily,
			"publisherTenant": publisher, "publisherProject": in.PublisherProjectID, "system": in.System}})
}

// ownInstead adds to a refusal what a publisher can do alone.
func ownInstead(err error) error {
	refused, is := fault.As(err)
	if !is || refused.Code != fault.Forbidden {
		return err
	}
	return refused.With(fault.Reason{Code: fault.Forbidden,
		Message: "only the platform's staff creates apps for all projects; for your own project, use " +
			"createSandboxApp (appctl apps create), which needs sandbox.manage on the project"})
}

// publisherOf returns the tenant of the project that publishes an app; nil for no project. NOT_FOUND when the project
// does not exist, or not any more.
func publisherOf(ctx context.Context, t *tx.Tx, projectID *ids.ID) (*ids.ID, error) {
	if projectID == nil {
		return nil, nil
	}
	found, err := t.Project.Query().Where(project.ID(*projectID), project.DeletedAtIsNil()).Only(ctx)
	if db.IsNotFound(err) {
		return nil, fault.NoSuch().At("input.publisherProjectId")
	}
	if err != nil {
		return nil, fmt.Errorf("load project %s: %w", *projectID, err)
	}
	return &found.TenantID, nil
}
