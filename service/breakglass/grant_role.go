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
	dbproject "github.com/gpuaas/app-platform/ent/generated/db/project"
	dbbinding "github.com/gpuaas/app-platform/ent/generated/db/rolebinding"
	dbtenant "github.com/gpuaas/app-platform/ent/generated/db/tenant"
	dbuser "github.com/gpuaas/app-platform/ent/generated/db/user"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/audit"
	"github.com/gpuaas/app-platform/service/check"
)

// Bounds of a role that is given for a short time.
const (
	leastMinutes = 5
	mostMinutes  = 240
	maxBindings  = 1_000 // live roles of one person, as for every role
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
// Faults: INVALID_ARGUMENT with the field, FORBIDDEN, NOT_FOUND, FAILED_PRECONDITION at input.subjectId for
// somebody disabled or of another tenant, LIMIT_EXCEEDED.
func (s *Service) GrantRole(ctx context.Context, in GrantRoleInput) (*db.RoleBinding, error) {
	var input check.Input
	why(&input, in.Reason, in.Incident)
	role, err := authz.ParseRole(in.Role)
	switch {
	case err != nil:
		input.Bad("input.role", "%s", fault.From(err).Message)
	case role == authz.PlatformOperator:
		input.Bad("input.role", "break-glass does not give the role that may use it")
	}
	if in.DurationMinutes < leastMinutes || in.DurationMinutes > mostMinutes {
		input.Bad("input.durationMinutes", "%d to %d minutes", leastMinutes, mostMinutes)
	}
	if err := input.Err(); err != nil {
		return nil, err
	}
	in.Reason = strings.TrimSpace(in.Reason)
	var out *db.RoleBinding
	var actor *authz.Actor
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) (err error) {
		actor = t.Actor
		out, err = grantRole(ctx, t, role, in)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.flag(ctx, "breakGlassGrantRole", actor, out.ID, in.Reason, in.Incident)
	return out, nil
}

func grantRole(ctx context.Context, t *tx.Tx, role authz.Role, in GrantRoleInput) (*db.RoleBinding, error) {
	const action = "breakGlassGrantRole"
	if err := allowed(t, action, in.SubjectID); err != nil {
		return nil, err
	}
	object, err := scope(ctx, t, action, in)
	if err != nil {
		return nil, err
	}
	if err := role.BindableAt(authz.Binding{TenantID: object.TenantID, ProjectID: object.ProjectID}.Scope()); err != nil {
		return nil, fault.From(err).At("input.role")
	}
	if err := mayHold(ctx, t, action, in.SubjectID, object); err != nil {
		return nil, err
	}
	create := t.RoleBinding.Create().SetID(ids.New(ids.RoleBinding)).SetUserID(in.SubjectID).SetRole(string(role)).SetBreakGlass(true).
		SetExpiresAt(t.Now.Add(time.Duration(in.DurationMinutes) * time.Minute)).SetGrantedBy(string(t.Actor.ID)).SetReason(in.Reason).SetCreatedAt(t.Now)
	if object.TenantID != "" {
		create.SetTenantID(object.TenantID)
	}
	if object.ProjectID != "" {
		create.SetProjectID(object.ProjectID)
	}
	row, err := create.Save(ctx)
	if err != nil {
		return nil, fmt.Errorf("give a role by break-glass: %w", err)
	}
	return row, audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.BreakGlassUse, Object: object, ObjectID: row.ID, Reason: in.Reason, BreakGlass: true,
		After: map[string]any{"subjectId": row.UserID, "role": row.Role, "tenantId": row.TenantID, "projectId": row.ProjectID,
			"expiresAt": row.ExpiresAt, "incident": in.Incident}})
}

// scope is where the role is given.
func scope(ctx context.Context, t *tx.Tx, action string, in GrantRoleInput) (authz.Object, error) {
	switch {
	case in.ProjectID != nil:
		project, err := t.Project.Query().Where(dbproject.ID(*in.ProjectID), dbproject.DeletedAtIsNil()).Only(ctx)
		if db.IsNotFound(err) {
			return authz.Object{}, audit.Missing(t, action, authz.BreakGlassUse, *in.ProjectID)
		}
		if err != nil {
			return authz.Object{}, fmt.Errorf("load project %s: %w", *in.ProjectID, err)
		}
		if in.TenantID != nil && *in.TenantID != project.TenantID {
			return authz.Object{}, fault.New(fault.InvalidArgument, "the project belongs to another tenant").At("input.tenantId")
		}
		return authz.Object{TenantID: project.TenantID, ProjectID: project.ID}, nil
	case in.TenantID != nil:
		found, err := t.Tenant.Query().Where(dbtenant.ID(*in.TenantID)).Exist(ctx)
		if err != nil {
			return authz.Object{}, fmt.Errorf("load tenant %s: %w", *in.TenantID, err)
		}
		if !found {
			return authz.Object{}, audit.Missing(t, action, authz.BreakGlassUse, *in.TenantID)
		}
		return authz.Object{TenantID: *in.TenantID}, nil
	}
	return authz.Object{}, nil
}

// mayHold keeps tenants apart, as for every role: break-glass sets permissions aside, not that wall.
func mayHold(ctx context.Context, t *tx.Tx, action string, id ids.ID, object authz.Object) error {
	subject, err := t.User.Query().Where(dbuser.ID(id)).Only(ctx)
	if db.IsNotFound(err) {
		return audit.Missing(t, action, authz.BreakGlassUse, id)
	}
	if err != nil {
		return fmt.Errorf("load person %s: %w", id, err)
	}
	if subject.DisabledAt != nil {
		return fault.New(fault.FailedPrecondition, "this person is disabled").At("input.subjectId")
	}
	if subject.TenantID != nil && *subject.TenantID != object.TenantID {
		return fault.New(fault.FailedPrecondition, "this person belongs to another tenant than the role").At("input.subjectId")
	}
	held, err := t.RoleBinding.Query().Where(dbbinding.UserID(id), dbbinding.RevokedAtIsNil(),
		dbbinding.Or(dbbinding.ExpiresAtIsNil(), dbbinding.ExpiresAtGT(t.Now))).Count(ctx)
	if err != nil {
		return fmt.Errorf("count the person's roles: %w", err)
	}
	if held >= maxBindings {
		return fault.New(fault.LimitExceeded, "a person may hold at most %d roles", maxBindings).At("input.subjectId")
	}
	return nil
}
