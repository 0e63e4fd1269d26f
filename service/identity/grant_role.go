package identity

import (
	"context"
	"fmt"
	"time"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbbinding "github.com/gpuaas/app-platform/ent/generated/db/rolebinding"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/audit"
	"github.com/gpuaas/app-platform/service/check"
)

// maxBindings bounds the live roles of one person.
const maxBindings = 1_000

// GrantRoleInput says which role goes to whom and where; a project implies its tenant, and with
// neither the role is at platform scope.
type GrantRoleInput struct {
	SubjectID           ids.ID
	Role                string
	TenantID, ProjectID *ids.ID
	ExpiresAt           *time.Time
	Reason              string
}

// GrantRole gives a role. Key: identity.binding.grant at the scope, and nobody gives keys they
// lack, nor for longer than they hold it. A role inside a tenant goes to its own people or to platform staff, one at platform scope
// to staff alone (FAILED_PRECONDITION). A live binding that is the same is answered, not repeated.
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
	object, err := scopeOf(ctx, t, action, in.TenantID, in.ProjectID)
	if err != nil {
		return nil, err
	}
	role, err := roleFor(in.Role, object)
	if err != nil {
		return nil, audit.Attempted(t, action, authz.BindingGrant, object, in.SubjectID, err)
	}
	if err := mayGrant(ctx, t, role, object, in.ExpiresAt); err != nil {
		return nil, audit.Refused(t, action, authz.BindingGrant, object, in.SubjectID, err)
	}
	subject, err := userOf(ctx, t, action, authz.BindingGrant, in.SubjectID)
	if err != nil {
		return nil, err
	}
	if err := mayHold(subject, object); err != nil {
		return nil, err
	}
	if same, err := sameBinding(ctx, t, role, object, in); same != nil || err != nil {
		return same, err
	}
	create := t.RoleBinding.Create().SetID(ids.New(ids.RoleBinding)).SetUserID(subject.ID).SetRole(string(role)).
		SetNillableExpiresAt(in.ExpiresAt).SetGrantedBy(string(t.Actor.ID)).SetReason(in.Reason).SetCreatedAt(t.Now)
	if object.TenantID != "" {
		create.SetTenantID(object.TenantID)
	}
	if object.ProjectID != "" {
		create.SetProjectID(object.ProjectID)
	}
	row, err := create.Save(ctx)
	if err != nil {
		return nil, fmt.Errorf("grant a role: %w", err)
	}
	return row, audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.BindingGrant, Object: object, ObjectID: row.ID,
		After: binding(row), Reason: in.Reason})
}

// roleFor is the role of a name that can be given there; INVALID_ARGUMENT at input.role.
func roleFor(name string, object authz.Object) (authz.Role, error) {
	role, err := authz.ParseRole(name)
	if err == nil {
		err = role.BindableAt(authz.Binding{TenantID: object.TenantID, ProjectID: object.ProjectID}.Scope())
	}
	if err != nil {
		return "", fault.From(err).At("input.role")
	}
	return role, nil
}

// mayGrant asks whether the caller holds what it takes to give the role, and for as long.
func mayGrant(ctx context.Context, t *tx.Tx, role authz.Role, object authz.Object, ends *time.Time) error {
	held, err := t.RoleBinding.Query().Where(dbbinding.UserID(t.Actor.ID), dbbinding.RevokedAtIsNil(),
		dbbinding.Or(dbbinding.ExpiresAtIsNil(), dbbinding.ExpiresAtGT(t.Now))).Limit(maxBindings).All(ctx)
	if err != nil {
		return fmt.Errorf("load the caller's roles: %w", err)
	}
	bindings := make([]authz.Binding, len(held))
	for i, row := range held {
		bindings[i] = authz.Binding{Role: authz.Role(row.Role), TenantID: deref(row.TenantID), ProjectID: deref(row.ProjectID), ExpiresAt: deref(row.ExpiresAt)}
	}
	return authz.RequireGrantUntil(t.Actor, bindings, role, object.TenantID, object.ProjectID, deref(ends))
}

// scopeOf is where a role is given: NOT_FOUND where the caller may not look, INVALID_ARGUMENT when
// the project is not the tenant's.
func scopeOf(ctx context.Context, t *tx.Tx, action string, tenantID, projectID *ids.ID) (authz.Object, error) {
	switch {
	case projectID != nil:
		project, err := projectOf(ctx, t, action, authz.BindingGrant, *projectID)
		if err != nil {
			return authz.Object{}, err
		}
		if tenantID != nil && *tenantID != project.TenantID {
			return authz.Object{}, fault.New(fault.InvalidArgument, "the project belongs to another tenant").At("input.tenantId")
		}
		return authz.Object{TenantID: project.TenantID, ProjectID: project.ID}, nil
	case tenantID != nil:
		tenant, err := tenantOf(ctx, t, action, authz.BindingGrant, *tenantID)
		if err != nil {
			return authz.Object{}, err
		}
		return authz.Object{TenantID: tenant.ID}, nil
	}
	return authz.Object{}, nil
}

// mayHold keeps tenants apart: nobody gets a role in a tenant that is not theirs, and none that
// reaches over all tenants while they belong to one.
func mayHold(subject *db.User, object authz.Object) error {
	switch {
	case subject.TenantID == nil || *subject.TenantID == object.TenantID:
		return nil
	case object.TenantID == "":
		return fault.New(fault.FailedPrecondition, "a role at platform scope goes to platform staff only, and this person belongs to a tenant").At("input.subjectId")
	}
	return fault.New(fault.FailedPrecondition, "this person belongs to another tenant").At("input.subjectId")
}

// sameBinding finds the live binding that already says what is asked for. The person's row is not
// locked: a twin that slips through gives nothing more.
func sameBinding(ctx context.Context, t *tx.Tx, role authz.Role, object authz.Object, in GrantRoleInput) (*db.RoleBinding, error) {
	held, err := t.RoleBinding.Query().Where(dbbinding.UserID(in.SubjectID), dbbinding.RevokedAtIsNil(),
		dbbinding.Or(dbbinding.ExpiresAtIsNil(), dbbinding.ExpiresAtGT(t.Now))).Limit(maxBindings).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("load the person's roles: %w", err)
	}
	for _, row := range held {
		if row.Role == string(role) && deref(row.TenantID) == object.TenantID && deref(row.ProjectID) == object.ProjectID &&
			deref(row.ExpiresAt).Equal(deref(in.ExpiresAt)) {
			return row, nil
		}
	}
	if len(held) >= maxBindings {
		return nil, fault.New(fault.LimitExceeded, "a person may hold at most %d roles", maxBindings).At("input.subjectId")
	}
	return nil, nil
}

// binding is what the audit keeps of one.
func binding(row *db.RoleBinding) map[string]any {
	return map[string]any{"subjectId": row.UserID, "role": row.Role, "tenantId": row.TenantID, "projectId": row.ProjectID, "expiresAt": row.ExpiresAt}
}
