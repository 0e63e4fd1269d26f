// Package allocation holds the verbs on allocations, the capacity that projects rent: request,
// release, and read. The platform picks the nodes; callers never name one.
package allocation

import (
	"context"
	"slices"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/kit/rows"
)

// Service holds the verbs on allocations.
type Service struct{ DB *tx.DB }

// Bounds of what callers write.
const maxMetadata = 4 << 10 // bytes of JSON

// list names the cursors of allocation lists.
const list = "allocations"

// object is what authorisation looks at in an allocation.
func object(row *db.Allocation) authz.Object {
	where := authz.Object{TenantID: row.TenantID, ProjectID: row.ProjectID, AllocationID: row.ID}
	if row.InstanceID != nil {
		where.InstanceID = *row.InstanceID
	}
	return where
}

// Get reads an allocation. Key: allocation.read. NOT_FOUND when it is missing or hidden.
func (s *Service) Get(ctx context.Context, id ids.ID) (*db.Allocation, error) {
	var found *db.Allocation
	actor, err := s.DB.Read(ctx, tx.Row(&found, rows.Allocation,
		`SELECT `+rows.AllocationColumns+` FROM allocation WHERE id = $1`, id))
	if err != nil {
		return nil, err
	}
	if found == nil {
		return nil, fault.NoSuch()
	}
	if err := authz.RequireOn(actor, authz.AllocationRead, object(found)); err != nil {
		return nil, err
	}
	return found, nil
}

// Many reads allocations by id; those missing or hidden are left out. Key: allocation.read.
func (s *Service) Many(ctx context.Context, wanted []ids.ID) (map[ids.ID]*db.Allocation, error) {
	var found []*db.Allocation
	actor, err := s.DB.Read(ctx, tx.Rows(&found, rows.Allocation,
		`SELECT `+rows.AllocationColumns+` FROM allocation WHERE id = ANY ($1)`, wanted))
	if err != nil {
		return nil, err
	}
	byID := make(map[ids.ID]*db.Allocation, len(found))
	for _, row := range found {
		if actor.AllowsOn(authz.AllocationRead, object(row)) {
			byID[row.ID] = row
		}
	}
	return byID, nil
}

// List reads the allocations of a project, newest first; no statuses choose all. Key: allocation.read on the project.
// NOT_FOUND when the project is missing or hidden.
func (s *Service) List(ctx context.Context, projectID ids.ID, statuses []lifecycle.AllocationStatus,
	args page.Args) (*page.Page[*db.Allocation], error) {
	var after ids.ID
	if err := args.Decode(list, &after); err != nil {
		return nil, err
	}
	names, among := make([]string, len(statuses)), ""
	for i, status := range statuses {
		names[i] = string(status)
	}
	if len(statuses) > 0 && !slices.ContainsFunc(statuses, lifecycle.AllocationStatus.Terminal) {
		among = " AND status <> 'RELEASED'" // by the index of those, and not through all history
	}
	var project *db.Project
	var found []*db.Allocation
	actor, err := s.DB.Read(ctx,
		tx.Row(&project, rows.ProjectRef, `SELECT id, tenant_id FROM project WHERE id = $1`, projectID),
		tx.Rows(&found, rows.Allocation, `SELECT `+rows.AllocationColumns+` FROM allocation WHERE project_id = $1
			AND ($2 = '' OR id < $2)
			AND (cardinality($3::text[]) = 0 OR status = ANY
			($3))`+among+` ORDER BY id DESC LIMIT $4`, projectID, after, names, args.First+1))
	if err != nil {
		return nil, err
	}
	if project == nil {
		return nil, fault.NoSuch()
	}
	if err := authz.RequireOn(actor, authz.AllocationRead,
		authz.Object{TenantID: project.TenantID, ProjectID: project.ID}); err != nil {
		return nil, err
	}
	return page.Cut(args, found, func(row *db.Allocation) string { return page.Cursor(list, row.ID) }), nil
}
