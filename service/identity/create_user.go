package identity

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/kit/idem"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// CreateUserInput is the input for a new person; TenantID is nil for platform staff.
type CreateUserInput struct {
	TenantID                           *ids.ID
	Email, DisplayName, IdempotencyKey string
}

// CreateUser adds a person. Key: identity.user.create on the tenant, or on the platform for staff. Whom a tenant adds
// by itself is invited, and logs in once they have accepted (see Invite), unless the address is of a verified domain of
// the tenant; the platform's staff vouches for whom it adds. Addresses are kept in lower case. CONFLICT when the tenant
// has the address itself; what other tenants have makes no difference.
func (s *Service) CreateUser(ctx context.Context, in CreateUserInput) (out *db.User, err error) {
	in.Email = strings.ToLower(strings.TrimSpace(in.Email))
	var input check.Input
	input.Email("input.email", in.Email)
	input.Text("input.displayName", in.DisplayName, 1, 100)
	if err := input.Err(); err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		out, err = createUser(ctx, t, in)
		return err
	})
	return out, err
}

func createUser(ctx context.Context, t *tx.Tx, in CreateUserInput) (*db.User, error) {
	const action = "createUser"
	object := authz.Object{TenantID: rows.Value(in.TenantID)}
	var tenant *db.Tenant
	if in.TenantID != nil {
		var err error
		if tenant, err = tenantOf(ctx, t, action, authz.UserCreate, *in.TenantID); err != nil {
			return nil, err
		}
	}
	if err := audit.Require(t, action, authz.UserCreate, object, object.TenantID); err != nil {
		return nil, err
	}
	if tenant != nil && tenant.Platform {
		return nil, ofStaff("input.tenantId")
	}
	made := made{ID: ids.New(ids.User)}
	repeated, err := idem.Claim(ctx, t, idem.Key{Verb: action, TenantID: object.TenantID, Value: in.IdempotencyKey,
		Input: in}, &made)
	if err != nil {
		return nil, err
	}
	if repeated {
		return t.User.Get(ctx, made.ID)
	}
	create := t.User.Create().SetID(made.ID).SetNillableTenantID(in.TenantID).SetEmail(in.Email).
		SetDisplayName(in.DisplayName).SetCreatedAt(t.Now)
	if tenant != nil && !t.Actor.Allows(authz.UserCreate, "", "") &&
		!slices.Contains(tenant.Domains, domainOf(in.Email)) {
		create.SetInvitedAt(t.Now)
	}
	row, err := create.Save(ctx)
	if tx.Violates(err, "person_tenant_email") || tx.Violates(err, "person_staff_email") {
		return nil, fault.New(fault.Conflict,
			"a person with this address exists already").At("input.email").Retry(false)
	}
	if err != nil {
		return nil, fmt.Errorf("create person: %w", err)
	}
	return row, audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.UserCreate, Object: object, ObjectID: row.ID,
		After: map[string]any{"email": in.Email, "displayName": in.DisplayName, "invited": row.InvitedAt != nil}})
}

// ofStaff returns why no one is added to the platform's own tenant, at the path: its people are the platform's staff,
// who have roles there.
func ofStaff(path string) error {
	return fault.New(fault.FailedPrecondition,
		"the people of the platform's own tenant are its staff: give a role there to "+
			"one of them (grantRole)").At(path)
}

// domainOf is the domain of an address.
func domainOf(email string) string { return email[strings.LastIndexByte(email, '@')+1:] }
