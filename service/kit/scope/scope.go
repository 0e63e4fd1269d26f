// Package scope is the tenant or the project that a read names: it looks them up in the read's own round trip, and asks
// whether the caller may read there.
package scope

import (
	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/rows"
)

// Scope is a tenant or a project, as a caller names it; of both the project counts.
type Scope struct {
	TenantID, ProjectID *ids.ID

	tenant, project *db.Project // of a tenant the id twice
}

// One refuses a scope that names none or both: INVALID_ARGUMENT.
func (s *Scope) One() error {
	if (s.TenantID == nil) == (s.ProjectID == nil) {
		return fault.New(fault.InvalidArgument, "name a tenant or a project").At("tenantId")
	}
	return nil
}

// With returns the queries that look the scope up, and others after them.
func (s *Scope) With(others ...tx.Query) []tx.Query {
	return append([]tx.Query{
		tx.Row(&s.project, rows.ProjectRef, `SELECT id, tenant_id FROM project WHERE id = $1`, s.ProjectID),
		tx.Row(&s.tenant, rows.ProjectRef, `SELECT id, id FROM tenant WHERE id = $1`, s.TenantID)}, others...)
}

// Require requires a key on the project, or on all of the tenant. NOT_FOUND for what the caller cannot see,
// INVALID_ARGUMENT when the project is another tenant's.
func (s *Scope) Require(actor *authz.Actor, key authz.Key) error {
	switch {
	case s.ProjectID != nil && s.project == nil:
		return fault.NoSuch()
	case s.project != nil && s.TenantID != nil && *s.TenantID != s.project.TenantID:
		return fault.New(fault.InvalidArgument, "the project belongs to another tenant").At("tenantId")
	case s.project != nil:
		return authz.Require(actor, key, s.project.TenantID, s.project.ID)
	case s.tenant != nil:
		return authz.RequireOn(actor, key, authz.Object{TenantID: s.tenant.ID})
	}
	return fault.NoSuch()
}
