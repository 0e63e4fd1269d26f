package audit

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/kit/rows"
)

// maxKinds bounds a filter by actor.
const maxKinds = 8

// List reads the audit of a project, newest first; kinds, when there are any, are the only actors'
// kinds that it shows. Key: audit.read on the project. INVALID_ARGUMENT at actorKinds.
func List(ctx context.Context, d *tx.DB, projectID ids.ID, kinds []string, args page.Args) (*page.Page[*db.AuditEntry],
	error) {
	if len(kinds) > maxKinds {
		return nil, fault.New(fault.InvalidArgument, "actorKinds may have at most %d kinds of actor",
			maxKinds).At("actorKinds")
	}
	if kinds == nil {
		kinds = []string{}
	}
	list := "audit " + string(projectID)
	after := ids.ID("zz") // beyond every id
	if err := args.Decode(list, &after); err != nil {
		return nil, err
	}
	var tenant *ids.ID
	var found []*db.AuditEntry
	actor, err := d.Read(ctx,
		tx.Row(&tenant, pgx.RowToAddrOf[ids.ID], `SELECT tenant_id FROM project WHERE id = $1`, projectID),
		tx.Rows(&found, rows.AuditEntry, `SELECT `+rows.AuditEntryColumns+`
			FROM audit_entry WHERE project_id = $1 AND id < $2
			AND (cardinality($4::text[]) = 0 OR actor_kind = ANY ($4)) ORDER BY id DESC LIMIT $3`,
			projectID, after, args.First+1, kinds))
	if err != nil {
		return nil, err
	}
	if tenant == nil {
		return nil, fault.NoSuch()
	}
	if err := authz.Require(actor, authz.AuditRead, *tenant, projectID); err != nil {
		return nil, err
	}
	return page.Cut(args, found, func(row *db.AuditEntry) string { return page.Cursor(list, row.ID) }), nil
}

// Get reads one entry. Key: audit.read on its project, or where it has none its tenant or the platform.
func Get(ctx context.Context, d *tx.DB, id ids.ID) (*db.AuditEntry, error) {
	var row *db.AuditEntry
	actor, err := d.Read(ctx, tx.Row(&row, rows.AuditEntry, `SELECT `+rows.AuditEntryColumns+`
		FROM audit_entry WHERE id = $1`, id))
	if err != nil {
		return nil, err
	}
	if row == nil {
		return nil, fault.NoSuch()
	}
	var tenant, project ids.ID
	if row.TenantID != nil {
		tenant = *row.TenantID
	}
	if row.ProjectID != nil {
		project = *row.ProjectID
	}
	return row, authz.Require(actor, authz.AuditRead, tenant, project)
}
