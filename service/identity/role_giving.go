package identity

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbbinding "github.com/gpuaas/app-platform/ent/generated/db/rolebinding"
	"github.com/gpuaas/app-platform/internal/tx"
)

// What all verbs that give a role have in common; each requires a key of its own.

// maxBindings bounds the live roles of one person.
const maxBindings = 1_000

// RolePlace is where a role is given: NOT_FOUND where the caller may not look, recorded as an attempt at the key;
// INVALID_ARGUMENT at input.tenantId when the project is not the tenant's.
func RolePlace(ctx context.Context, t *tx.Tx, action string, key authz.Key, tenantID, projectID *ids.ID) (authz.Object,
	error) {
	switch {
	case projectID != nil:
		project, err := projectOf(ctx, t, action, key, *projectID)
		if err != nil {
			return authz.Object{}, err
		}
		if tenantID != nil && *tenantID != project.TenantID {
			return authz.Object{}, fault.New(fault.InvalidArgument, "the project belongs to another tenant").
				At("input.tenantId")
		}
		return authz.Object{TenantID: project.TenantID, ProjectID: project.ID}, nil
	case tenantID != nil:
		tenant, err := tenantOf(ctx, t, action, key, *tenantID)
		if err != nil {
			return authz.Object{}, err
		}
		return authz.Object{TenantID: tenant.ID}, nil
	}
	return authz.Object{}, nil
}

// RoleFor is the role of a name that can be given there; INVALID_ARGUMENT at input.role.
func RoleFor(name string, object authz.Object) (authz.Role, error) {
	role, err := authz.ParseRole(name)
	if err == nil {
		err = role.BindableAt(authz.Binding{TenantID: object.TenantID, ProjectID: object.ProjectID}.Scope())
	}
	if err != nil {
		return "", fault.From(err).At("input.role")
	}
	return role, nil
}

// RoleHolder is the person who is to get a role there. It keeps tenants apart: no one gets a role in a tenant that is
// not theirs, nor one that reaches over all tenants while they belong to one (FAILED_PRECONDITION at input.subjectId).
func RoleHolder(ctx context.Context, t *tx.Tx, action string, key authz.Key, id ids.ID, object authz.Object) (*db.User,
	error) {
	subject, err := userOf(ctx, t, action, key, id)
	switch {
	case err != nil:
		return nil, err
	case subject.TenantID == nil || *subject.TenantID == object.TenantID:
		return subject, nil
	case object.TenantID == "":
		return nil, fault.New(fault.FailedPrecondition,
			"a role at platform scope goes to platform staff only, and this person belongs to a tenant").
			At("input.subjectId")
	}
	return nil, fault.New(fault.FailedPrecondition, "this person belongs to another tenant").At("input.subjectId")
}

// RoomForRole refuses one more role for a person who holds as many as may be: LIMIT_EXCEEDED at input.subjectId.
func RoomForRole(ctx context.Context, t *tx.Tx, id ids.ID) error {
	held, err := liveRoles(ctx, t, id)
	if err != nil {
		return err
	}
	return roomFor(held)
}

func roomFor(held []*db.RoleBinding) error {
	if len(held) >= maxBindings {
		return fault.New(fault.LimitExceeded, "a person may have at most %d roles", maxBindings).At("input.subjectId")
	}
	return nil
}

// liveRoles are the bindings of a person that hold now, at most maxBindings.
func liveRoles(ctx context.Context, t *tx.Tx, id ids.ID) ([]*db.RoleBinding, error) {
	held, err := t.RoleBinding.Query().Where(dbbinding.UserID(id), dbbinding.RevokedAtIsNil(),
		dbbinding.Or(dbbinding.ExpiresAtIsNil(), dbbinding.ExpiresAtGT(t.Now))).Limit(maxBindings).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("load the roles of %s: %w", id, err)
	}
	return held, nil
}

// NewBinding is a role for a person there, given by the caller, that is not stored yet.
func NewBinding(t *tx.Tx, subject ids.ID, role authz.Role, object authz.Object) *db.RoleBindingCreate {
	create := t.RoleBinding.Create().SetID(ids.New(ids.RoleBinding)).SetUserID(subject).SetRole(string(role)).
		SetGrantedBy(string(t.Actor.ID)).SetCreatedAt(t.Now)
	if object.TenantID != "" {
		create.SetTenantID(object.TenantID)
	}
	if object.ProjectID != "" {
		create.SetProjectID(object.ProjectID)
	}
	return create
}
