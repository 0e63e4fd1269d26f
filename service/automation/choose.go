// Package automation holds the verbs by which adapters act outside of operations: an instance's project chooses one of
// its service accounts for it, and the account that the instance's adapter is registered with gets tokens of that one.
package automation

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbinstance "github.com/gpuaas/app-platform/ent/generated/db/instance"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/account"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/ledger/audit"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

// Service holds the verbs.
type Service struct {
	DB *tx.DB
	// Keys signs tokens; nil where no tokens are issued.
	Keys *token.Keyring
}

// ChooseInput chooses the account that an instance's adapter may act by.
type ChooseInput struct {
	InstanceID       ids.ID
	ServiceAccountID *ids.ID // nil for none
	Reason           string
}

const choosing = "setOperatorAccount"

// Choose sets the service account that the instance's adapter may act by for it, or none. Tokens of the former one end
// with the commit. Key: <family>.instance.update on the project, and each key of the account. Faults: NOT_FOUND, at
// input.serviceAccountId for what is not a live account of the project, FORBIDDEN, INVALID_ARGUMENT at input.reason,
// FAILED_PRECONDITION when the instance was torn down.
func (s *Service) Choose(ctx context.Context, in ChooseInput) (out *db.Instance, err error) {
	var input check.Input
	input.Reason("input.reason", in.Reason)
	if err := input.Err(); err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		out, err = in.choose(ctx, t)
		return err
	})
	return out, err
}

func (in ChooseInput) choose(ctx context.Context, t *tx.Tx) (*db.Instance, error) {
	seen, err := t.Instance.Query().Where(dbinstance.ID(in.InstanceID)).Only(ctx)
	if db.IsNotFound(err) {
		return nil, audit.Missing(t, choosing, authz.FamilyKeys("instance.update")[0], in.InstanceID)
	}
	if err != nil {
		return nil, fmt.Errorf("load instance %s: %w", in.InstanceID, err)
	}
	key, err := authz.FamilyKey(seen.PermissionFamily, "instance.update")
	if err != nil {
		return nil, err
	}
	object := authz.Object{TenantID: seen.TenantID, ProjectID: seen.ProjectID, InstanceID: seen.ID}
	if err := audit.Require(t, choosing, key, object, seen.ID); err != nil {
		return nil, err
	}
	row, err := t.Instance.Query().Where(dbinstance.ID(in.InstanceID)).ForUpdate().Only(ctx)
	if err != nil {
		return nil, fmt.Errorf("lock instance %s: %w", in.InstanceID, err)
	}
	if row.ReleasedAt != nil {
		return nil, fault.New(fault.FailedPrecondition, "instance %s was torn down", row.ID).At("input.instanceId")
	}
	if in.ServiceAccountID != nil {
		if _, err := account.Chosen(ctx, t, *in.ServiceAccountID, object, "input.serviceAccountId"); err != nil {
			return nil, audit.Attempted(t, choosing, key, object, row.ID, err)
		}
	}
	before := row.OperatorServiceAccountID
	if _, err := t.Exec(ctx, `UPDATE instance SET operator_service_account_id = $2, updated_at = $3
		WHERE id = $1`, row.ID,
		in.ServiceAccountID, t.Now); err != nil {
		return nil, fmt.Errorf("choose the account of %s: %w", row.ID, err)
	}
	row.OperatorServiceAccountID, row.UpdatedAt = in.ServiceAccountID, t.Now
	t.Wake(event.InstanceTopic(row.ID), event.ProjectTopic(row.ProjectID))
	return row, audit.Write(ctx, t, audit.Entry{Action: choosing, Key: key, Object: object, ObjectID: row.ID,
		Reason: in.Reason, Before: map[string]any{"operatorServiceAccountId": before},
		After: map[string]any{"operatorServiceAccountId": in.ServiceAccountID}})
}
