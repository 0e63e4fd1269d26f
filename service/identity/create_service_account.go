package identity

import (
	"context"
	"fmt"
	"slices"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/kit/idem"
	"github.com/gpuaas/app-platform/service/kit/maker"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// CreateServiceAccountInput is the input for a new service account.
type CreateServiceAccountInput struct {
	ProjectID            ids.ID
	Name, IdempotencyKey string
	PermissionKeys       []string
	Limits               *AccountLimits // nil for nothing more
}

// CreateServiceAccount creates a service account with an allow-list. Key: identity.service_account.create on the
// project, and every key of the list. INVALID_ARGUMENT for a key that no service account can hold; CONFLICT when the
// project has one of that name.
func (s *Service) CreateServiceAccount(ctx context.Context, in CreateServiceAccountInput) (out *db.ServiceAccount,
	err error) {
	in.PermissionKeys = slices.Clone(in.PermissionKeys)
	var input check.Input
	input.Slug("input.name", in.Name)
	if len(in.PermissionKeys) == 0 || len(in.PermissionKeys) > len(authz.Keys()) {
		input.Bad("input.permissionKeys", "must have 1 to %d permission keys", len(authz.Keys()))
	}
	in.Limits.check(&input, "input.limits")
	if err := input.Err(); err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		out, err = createServiceAccount(ctx, t, in)
		return err
	})
	return out, err
}

func createServiceAccount(ctx context.Context, t *tx.Tx, in CreateServiceAccountInput) (*db.ServiceAccount, error) {
	const action = "createServiceAccount"
	project, err := projectOf(ctx, t, action, authz.ServiceAccountCreate, in.ProjectID)
	if err != nil {
		return nil, err
	}
	object := authz.Object{TenantID: project.TenantID, ProjectID: project.ID}
	if err := audit.Require(t, action, authz.ServiceAccountCreate, object, project.ID); err != nil {
		return nil, err
	}
	if err := authz.RequireDelegate(t.Actor, in.PermissionKeys, object.TenantID, object.ProjectID); err != nil {
		return nil, audit.Attempted(t, action, authz.ServiceAccountCreate, object, project.ID, below("input", err))
	}
	made := made{ID: ids.New(ids.ServiceAccount)}
	repeated, err := idem.Claim(ctx, t, idem.Key{Verb: action, TenantID: object.TenantID, ProjectID: object.ProjectID,
		Value: in.IdempotencyKey, Input: in}, &made)
	if err != nil {
		return nil, err
	}
	if repeated {
		return t.ServiceAccount.Get(ctx, made.ID)
	}
	slices.Sort(in.PermissionKeys)
	create := t.ServiceAccount.Create().SetID(made.ID).SetTenantID(object.TenantID).SetProjectID(object.ProjectID).
		SetName(in.Name).
		SetPermissionKeys(slices.Compact(in.PermissionKeys)).SetCreatedAt(t.Now).SetUpdatedAt(t.Now)
	limits, err := in.Limits.stored()
	if err != nil {
		return nil, err
	}
	if limits != nil {
		create.SetLimits(limits)
	}
	from, err := maker.Of(ctx, t, gives(authz.ServiceAccountCreate, in.PermissionKeys, object))
	if err != nil {
		return nil, err
	}
	create.SetNillableMakerID(from.Maker).SetNillableMadeUnder(from.Under)
	row, err := create.Save(ctx)
	if tx.Violates(err, "service_account_name_live") {
		return nil, fault.New(fault.Conflict, "the project has a service account %q already",
			in.Name).At("input.name").Retry(false)
	}
	if err != nil {
		return nil, fmt.Errorf("create service account: %w", err)
	}
	return row, audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.ServiceAccountCreate, Object: object,
		ObjectID: row.ID,
		After:    account(row)})
}

// gives is what it takes to make something with the keys named: the verb's own key, and every one of them.
func gives(key authz.Key, names []string, object authz.Object) func(*authz.Actor) bool {
	return func(actor *authz.Actor) bool {
		return actor.AllowsOn(key, object) && authz.RequireDelegate(actor, names, object.TenantID,
			object.ProjectID) == nil
	}
}

// below is the fault with its malformed fields' paths below a prefix.
func below(prefix string, err error) error {
	refused, ok := fault.As(err)
	if !ok || refused.Code != fault.InvalidArgument {
		return err
	}
	prefixed := *refused
	prefixed.Reasons = fault.Prefixed(prefix, refused.Reasons)
	return &prefixed
}
