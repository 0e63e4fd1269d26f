package identity

import (
	"context"
	"fmt"
	"time"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/kit/maker"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// GrantRoleInput says which role goes to whom and where; a project implies its tenant, and with
// neither the role is at platform scope.
type GrantRoleInput struct {
	SubjectID           ids.ID
	Role                string
	TenantID, ProjectID *ids.ID
	ExpiresAt           *time.Time
	Reason              string
}

// GrantRole gives a role. Key: identity.binding.grant at the scope, and no caller gives keys that it lacks, nor for
// longer than it has them. A role inside a tenant goes to its own people or to platform staff, one at platform scope to
// staff alone (FAILED_PRECONDITION). A live binding that is the same is returned, not repeated.
func (s *Service) GrantRole(ctx context.Context, in GrantRoleInput) (out *db.RoleBinding, err error) {
	var input check.Input
	input.Reason("input.reason", in.Reason)
	input.Future("input.expiresAt", in.ExpiresAt, s.DB.Now())
	if err := input.Err(); err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		out, err = grantRole(ctx, t, in)
		return err
	})
	return out, err
}

func grantRole(ctx context.Context, t *tx.Tx, in GrantRoleInput) (*db.RoleBinding, error) {
	const action = "grantRole"
	object, err := RolePlace(ctx, t, action, authz.BindingGrant, in.TenantID, in.ProjectID)
	if err != nil {
		return nil, err
	}
	role, err := RoleFor(in.Role, object)
	if err != nil {
		return nil, audit.Attempted(t, action, authz.BindingGrant, object, in.SubjectID, err)
	}
	if err := mayGrant(ctx, t, role, object, in.ExpiresAt); err != nil {
		return nil, audit.Refused(t, action, authz.BindingGrant, object, in.SubjectID, err)
	}
	subject, err := RoleHolder(ctx, t, action, authz.BindingGrant, in.SubjectID, object)
	if err != nil {
		return nil, err
	}
	if same, err := sameBinding(ctx, t, role, object, in); same != nil || err != nil {
		return same, err
	}
	from, err := maker.Of(ctx, t, func(actor *authz.Actor) bool {
		return authz.RequireGrant(actor, role, object.TenantID, object.ProjectID) == nil
	})
	if err != nil {
		return nil, err
	}
	row, err := NewBinding(t, subject.ID, role,
		object).SetNillableExpiresAt(in.ExpiresAt).SetNillableMadeUnder(from.Under).SetReason(in.Reason).Save(ctx)
	if err != nil {
		return nil, fmt.Errorf("grant a role: %w", err)
	}
	return row, audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.BindingGrant, Object: object,
		ObjectID: row.ID, After: binding(row), Reason: in.Reason})
}

// mayGrant refuses a caller that lacks a key of the role, or has it for a shorter time.
func mayGrant(ctx context.Context, t *tx.Tx, role authz.Role, object authz.Object, ends *time.Time) error {
	held, err := liveRoles(ctx, t, t.Actor.ID)
	if err != nil {
		return err
	}
	bindings := make([]authz.Binding, len(held))
	for i, row := range held {
		bindings[i] = authz.Binding{Role: authz.Role(row.Role), TenantID: rows.Value(row.TenantID),
			ProjectID: rows.Value(row.ProjectID), ExpiresAt: rows.Value(row.ExpiresAt)}
	}
	return authz.RequireGrantUntil(t.Actor, bindings, role, object.TenantID, object.ProjectID, rows.Value(ends))
}

// sameBinding finds the live binding that already gives what is requested. The person's row is not locked: a twin that
// slips through gives nothing more.
func sameBinding(ctx context.Context, t *tx.Tx, role authz.Role, object authz.Object,
	in GrantRoleInput) (*db.RoleBinding, error) {
	held, err := liveRoles(ctx, t, in.SubjectID)
	if err != nil {
		return nil, err
	}
	for _, row := range held {
		if row.Role == string(role) && rows.Value(row.TenantID) == object.TenantID &&
			rows.Value(row.ProjectID) == object.ProjectID &&
			rows.Value(row.ExpiresAt).Equal(rows.Value(in.ExpiresAt)) {
			return row, nil
		}
	}
	return nil, roomFor(held)
}

// binding is what the audit keeps of one.
func binding(row *db.RoleBinding) map[string]any {
	return map[string]any{"subjectId": row.UserID, "role": row.Role, "tenantId": row.TenantID,
		"projectId": row.ProjectID, "expiresAt": row.ExpiresAt}
}
