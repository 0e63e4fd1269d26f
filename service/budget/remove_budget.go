package budget

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// Remove removes a budget: what it was for may spend again. Key: that of setting it. Faults: INVALID_ARGUMENT,
// NOT_FOUND, FORBIDDEN.
func (s *Service) Remove(ctx context.Context, id ids.ID, reason string) (out *Budget, err error) {
	wrong := &check.Input{}
	wrong.Text("reason", reason, 1, check.MaxReason)
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		const action = "removeBudget"
		found, err := read(ctx, t, `AND budget.id = $1 FOR UPDATE OF budget`, id)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return audit.Missing(t, action, authz.BudgetManage, id)
		}
		out = found[0]
		where := target{tenantID: out.TenantID}
		if out.ProjectID != nil {
			where.projectID = *out.ProjectID
		}
		if err := where.authorise(t, action, out.Scope, out.TargetID); err != nil {
			return err
		}
		if _, err := t.Exec(ctx, `UPDATE budget SET removed_at = $2 WHERE id = $1`, id, t.Now); err != nil {
			return fmt.Errorf("remove budget %s: %w", id, err)
		}
		return audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.BudgetManage, ObjectID: id, Reason: reason,
			Before: shown(out),
			Object: authz.Object{TenantID: where.tenantID, ProjectID: where.projectID}})
	})
	return out, err
}
