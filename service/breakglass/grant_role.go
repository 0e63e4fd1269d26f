package breakglass

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/identity"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// Bounds of a role that is given for a short time.
const (
	leastMinutes = 5
	mostMinutes  = 240
)

// GrantRoleInput says which role goes to whom and where, for how long, and why.
type GrantRoleInput struct {
	SubjectID           ids.ID
	Role                string
	TenantID, ProjectID *ids.ID
	DurationMinutes     int
	Reason, Incident    string
}

// GrantRole gives a role that ends by itself, also one whose keys the caller lacks, also to the caller. It
// is never the role that may use break-glass. Key: break_glass.use on the platform.
//
// Faults: INVALID_ARGUMENT with the field, FORBIDDEN, NOT_FOUND, FAILED_PRECONDITION at input.subjectId for a person
// who is disabled or of another tenant, LIMIT_EXCEEDED.
func (s *Service) GrantRole(ctx context.Context, in GrantRoleInput) (*db.RoleBinding, error) {
	var input check.Input
	why(&input, in.Reason, in.Incident)
	role, err := authz.ParseRole(in.Role)
	switch {
	case err != nil:
		input.Bad("input.role", "%s", fault.From(err).Message)
	case role == authz.PlatformOperator:
		input.Bad("input.role", "must not be the role that may use break-glass")
	}
	if in.DurationMinutes < leastMinutes || in.DurationMinutes > mostMinutes {
		input.Bad("input.durationMinutes", "must be %d to %d minutes", leastMinutes, mostMinutes)
	}
	if err := input.Err(); err != nil {
		return nil, err
	}
	in.Reason = strings.TrimSpace(in.Reason)
	var out *db.RoleBinding
	var actor *authz.Actor
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) (err error) {
		actor = t.Actor
		out, err = grantRole(ctx, t, in)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.flag(ctx, "breakGlassGrantRole", actor, out.ID, in.Reason, in.Incident)
	return out, nil
}

func grantRole(ctx context.Context, t *tx.Tx, in GrantRoleInput) (*db.RoleBinding, error) {
	const action = "breakGlassGrantRole"
	if err := allowed(t, action, in.SubjectID); err != nil {
		return nil, err
	}
	object, err := identity.RolePlace(ctx, t, action, authz.BreakGlassUse, in.TenantID, in.ProjectID)
	if err != nil {
		return nil, err
	}
	role, err := identity.RoleFor(in.Role, object)
	if err != nil {
		return nil, err
	}
	subject, err := identity.RoleHolder(ctx, t, action, authz.BreakGlassUse, in.SubjectID, object)
	if err != nil {
		return nil, err
	}
	if subject.DisabledAt != nil {
		return nil, fault.New(fault.FailedPrecondition, "this person is disabled").At("input.subjectId")
	}
	if err := identity.RoomForRole(ctx, t, subject.ID); err != nil {
		return nil, err
	}
	row, err := identity.NewBinding(t, subject.ID, role, object).SetBreakGlass(true).SetReason(in.Reason).
		SetExpiresAt(t.Now.Add(time.Duration(in.DurationMinutes) * time.Minute)).Save(ctx)
	if err != nil {
		return nil, fmt.Errorf("give a role by break-glass: %w", err)
	}
	return row, audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.BreakGlassUse, Object: object,
		ObjectID: row.ID, Reason: in.Reason, BreakGlass: true,
		After: map[string]any{"subjectId": row.UserID, "role": row.Role, "tenantId": row.TenantID,
			"projectId": row.ProjectID, "expiresAt": row.ExpiresAt, "incident": in.Incident}})
}
