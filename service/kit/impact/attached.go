package impact

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
)

// Attached is another project that uses an instance's control plane.
type Attached struct {
	ProjectID   ids.ID
	DisplayName string
}

// AttachedTo reads the projects that are attached to an instance, by id, at most 100. Nobody attaches or leaves
// while the caller holds the instance's row. An instance that serves its own project alone costs no statement.
func AttachedTo(ctx context.Context, t *tx.Tx, row *db.Instance) ([]Attached, error) {
	if lifecycle.ControlPlaneScope(row.ControlPlaneScope) != lifecycle.ControlPlaneTenant {
		return nil, nil
	}
	found, err := t.Query(ctx, `SELECT project_id, display_name FROM platform.attached_projects($1)`, row.ID)
	if err != nil {
		return nil, fmt.Errorf("read who is attached to %s: %w", row.ID, err)
	}
	attached, err := pgx.CollectRows(found, pgx.RowToStructByPos[Attached])
	if err != nil {
		return nil, fmt.Errorf("read who is attached to %s: %w", row.ID, err)
	}
	return attached, nil
}

// InUse is the refusal to end a control plane that other projects are attached to, naming them; the path names the
// input field that would have ended it.
func InUse(attached []Attached, path string) *fault.Fault {
	names := make([]string, len(attached))
	reasons := make([]fault.Reason, len(attached))
	for i, one := range attached {
		names[i] = one.DisplayName
		reasons[i] = fault.Reason{Code: fault.ControlPlaneInUse,
			Message: fmt.Sprintf("project %s (%s) is attached", one.DisplayName, one.ProjectID), Path: path}
	}
	const named = 10
	text := strings.Join(names[:min(len(names), named)], ", ")
	if more := len(names) - named; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return fault.New(fault.ControlPlaneInUse,
		"%d other projects use this control plane: %s; have them leave it, or use force with a reason",
		len(attached), text).
		With(reasons[:min(len(reasons), fault.MaxReasons)]...)
}

// rolePairs are the static policy's roles with their keys, pair by pair: who holds which key through a binding in a
// project or its tenant.
var rolePairs = sync.OnceValues(func() (roles, keys []string) {
	for _, entry := range authz.Roles() {
		if entry.Role.BindableAt(authz.ScopeTenant) != nil && entry.Role.BindableAt(authz.ScopeProject) != nil {
			continue
		}
		for _, key := range authz.RoleMask(entry.Role).Names() {
			roles, keys = append(roles, string(entry.Role)), append(keys, key)
		}
	}
	return roles, keys
})
