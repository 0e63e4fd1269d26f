package audit

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/kit/rows"
)

// Filter is what is looked for in the audit; every part that is given must fit.
type Filter struct {
	TenantID, ProjectID *ids.ID
	ActorID             *string
	ActorKinds          []string
	ObjectID            *string
	PermissionKey       *string
	Action              *string
	Allowed             *bool
	BreakGlass          *bool
	CorrelationID       *string
	From, To            *time.Time
}

// maxSought bounds a text that is looked for, in bytes.
const maxSought = 200

// check is INVALID_ARGUMENT with the field that no entry could fit.
func (f Filter) check() error {
	var wrong check.Input
	for path, text := range map[string]*string{"actorId": f.ActorID, "objectId": f.ObjectID,
		"permissionKey": f.PermissionKey,
		"action":        f.Action, "correlationId": f.CorrelationID} {
		if text != nil && (len(*text) > maxSought || strings.ContainsRune(*text, 0)) {
			wrong.Bad("filter."+path, "must have at most %d bytes, without NUL", maxSought)
		}
	}
	if len(f.ActorKinds) > maxKinds {
		wrong.Bad("filter.actorKinds", "must have at most %d kinds of actor", maxKinds)
	}
	if f.From != nil && f.To != nil && !f.From.Before(*f.To) {
		wrong.Bad("filter.to", "must be after from")
	}
	return wrong.Err()
}

// where is the filter as SQL, beginning with the place after which the page is read, and its arguments. It contains
// only what is given, so that each filter uses its own index.
func (f Filter) where(before ids.ID) (string, []any) {
	clauses, args := []string{"id < $1"}, []any{before}
	add := func(clause string, value any) {
		args = append(args, value)
		clauses = append(clauses, fmt.Sprintf(clause, len(args)))
	}
	for clause, id := range map[string]*ids.ID{"tenant_id = $%d": f.TenantID, "project_id = $%d": f.ProjectID} {
		if id != nil {
			add(clause, *id)
		}
	}
	for clause, text := range map[string]*string{"actor_id = $%d": f.ActorID, "object_id = $%d": f.ObjectID,
		"permission_key = $%d": f.PermissionKey,
		"action = $%d":         f.Action, "correlation_id = $%d": f.CorrelationID} {
		if text != nil {
			add(clause, *text)
		}
	}
	if len(f.ActorKinds) > 0 {
		add("actor_kind = ANY ($%d)", f.ActorKinds)
	}
	if f.Allowed != nil {
		add("allowed = $%d", *f.Allowed)
	}
	if f.BreakGlass != nil {
		clauses = append(clauses, map[bool]string{true: "break_glass", false: "NOT break_glass"}[*f.BreakGlass])
	}
	if f.From != nil {
		add("created_at >= $%d", *f.From)
	}
	if f.To != nil {
		add("created_at < $%d", *f.To)
	}
	return strings.Join(clauses, " AND "), args
}

// Search looks in the audit, newest first. Key: audit.read on the project or tenant that the filter names,
// else on the platform. INVALID_ARGUMENT at the field of the filter, NOT_FOUND for a project or tenant that
// the caller does not see.
func Search(ctx context.Context, d *tx.DB, filter Filter, args page.Args) (*page.Page[*db.AuditEntry], error) {
	if err := filter.check(); err != nil {
		return nil, err
	}
	list := "audit search"
	before := ids.ID("zz") // beyond every id
	if err := args.Decode(list, &before); err != nil {
		return nil, err
	}
	where, values := filter.where(before)
	var owner *ids.ID
	var found []*db.AuditEntry
	queries := []tx.Query{tx.Rows(&found, rows.AuditEntry,
		fmt.Sprintf(`SELECT %s FROM audit_entry WHERE %s ORDER BY id DESC LIMIT %d`, rows.AuditEntryColumns, where,
			args.First+1),
		values...)}
	if filter.ProjectID != nil {
		queries = append(queries, tx.Row(&owner, pgx.RowToAddrOf[ids.ID], `SELECT tenant_id FROM project WHERE id = $1`,
			*filter.ProjectID))
	}
	actor, err := d.Read(ctx, queries...)
	if err != nil {
		return nil, err
	}
	var tenant, project ids.ID
	switch {
	case filter.ProjectID != nil && owner == nil:
		return nil, fault.NoSuch()
	case filter.ProjectID != nil:
		tenant, project = *owner, *filter.ProjectID
	case filter.TenantID != nil:
		tenant = *filter.TenantID
	}
	if err := authz.Require(actor, authz.AuditRead, tenant, project); err != nil {
		return nil, err
	}
	return page.Cut(args, found, func(row *db.AuditEntry) string { return page.Cursor(list, row.ID) }), nil
}
