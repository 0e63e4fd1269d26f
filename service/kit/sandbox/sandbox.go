// Package sandbox holds the bounds of what tenants put into the catalog for themselves: which names they may take, and
// how many.
package sandbox

import (
	"context"
	"fmt"
	"strings"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbproject "github.com/gpuaas/app-platform/ent/generated/db/project"
	"github.com/gpuaas/app-platform/internal/tx"
)

// Most is how many apps, and how many adapters, a tenant may have in sandboxes at once.
const Most = 20

// A Place is the project that a sandbox belongs to, and its tenant's short name.
type Place struct {
	authz.Object
	slug string
}

// Of loads the project's place; its ids are empty for a project that the caller cannot see. Nothing is authorised.
func Of(ctx context.Context, t *tx.Tx, projectID ids.ID) (Place, error) {
	project, err := t.Project.Query().Where(dbproject.ID(projectID), dbproject.DeletedAtIsNil()).Only(ctx)
	if db.IsNotFound(err) {
		return Place{}, nil
	}
	if err != nil {
		return Place{}, fmt.Errorf("load project %s: %w", projectID, err)
	}
	place := Place{Object: authz.Object{TenantID: project.TenantID, ProjectID: project.ID}}
	if err := t.QueryRow(ctx, `SELECT slug FROM tenant WHERE id = $1`, project.TenantID).Scan(&place.slug); err != nil {
		return Place{}, fmt.Errorf("load tenant %s: %w", project.TenantID, err)
	}
	return place, nil
}

// Named refuses a name that does not begin with the tenant's short name: names are the whole platform's, and those of
// others are not a tenant's to take, nor to find out about. INVALID_ARGUMENT at the path.
func (p Place) Named(name, path string) error {
	if strings.HasPrefix(name, p.slug+"-") {
		return nil
	}
	return fault.New(fault.InvalidArgument, "a name in a sandbox must begin with %q, the tenant's short name and a "+
		"hyphen: only the platform's staff gives other names", p.slug+"-").At(path)
}

// Room locks what the tenant has in sandboxes against another addition at the same time, and refuses one too many:
// LIMIT_EXCEEDED at input.projectId. What is counted are apps or adapters, by a query on the tenant.
func (p Place) Room(ctx context.Context, t *tx.Tx, what, query string) error {
	if _, err := t.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('sandboxes of ' || $1, 0))`,
		p.TenantID); err != nil {
		return fmt.Errorf("lock the sandboxes of %s: %w", p.TenantID, err)
	}
	var held int
	if err := t.QueryRow(ctx, query, p.TenantID).Scan(&held); err != nil {
		return fmt.Errorf("count the %s of %s: %w", what, p.TenantID, err)
	}
	if held >= Most {
		return fault.New(fault.LimitExceeded,
			"a tenant may have %d %s in sandboxes: have one opened by the platform's staff, "+
				"or reuse one", Most, what).At("input.projectId")
	}
	return nil
}
