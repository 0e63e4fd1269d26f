// Package catalog holds the verbs on apps, their manifests and who may launch them.
package catalog

import (
	"context"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/rows"
)

// Service holds the verbs on the catalog.
type Service struct {
	DB *tx.DB
}

// made is what an idempotency key stores.
type made struct {
	ID ids.ID `json:"id"`
}

// visible returns the families whose apps the caller may see. FORBIDDEN without any.
func visible(actor *authz.Actor) ([]string, error) {
	if err := authz.RequireAnywhere(actor, authz.FamilyKeys("catalog.read")...); err != nil {
		return nil, err
	}
	return seenFamilies(actor), nil
}

// seenFamilies is the families whose apps the caller may see.
func seenFamilies(actor *authz.Actor) []string {
	var families []string
	for _, family := range authz.Families() {
		key, err := authz.FamilyKey(family, "catalog.read")
		if err == nil && actor.AllowsAnywhere(key) {
			families = append(families, family)
		}
	}
	return families
}

// oneApp reads an app by a condition on one value and checks that the caller may see its family.
func (s *Service) oneApp(ctx context.Context, condition string, value any) (*db.App, error) {
	var app *db.App
	actor, err := s.DB.Read(ctx, tx.Row(&app, rows.App, `SELECT `+rows.AppColumns+` FROM app WHERE `+condition, value))
	if err != nil {
		return nil, err
	}
	if err := authz.RequireAnywhere(actor, authz.FamilyKeys("catalog.read")...); err != nil {
		return nil, err
	}
	if app == nil {
		return nil, fault.NoSuch()
	}
	key, err := authz.FamilyKey(app.PermissionFamily, "catalog.read")
	if err != nil || !actor.AllowsAnywhere(key) {
		return nil, fault.NoSuch()
	}
	conceal(actor, app)
	return app, nil
}

// conceal removes the publisher of an app, since every tenant may read the catalog. A caller that may read the app's
// manifests of every stage sees it.
func conceal(actor *authz.Actor, app *db.App) {
	of := publisher{tenant: app.PublisherTenantID, project: app.PublisherProjectID}.object()
	if !actor.Allows(authz.ManifestRead, of.TenantID, of.ProjectID) {
		app.PublisherTenantID, app.PublisherProjectID = nil, nil
	}
}

// texts is ids as PostgreSQL takes an array; never nil, which would be NULL.
func texts(list []ids.ID) []string {
	out := make([]string, len(list))
	for i, id := range list {
		out[i] = string(id)
	}
	return out
}
