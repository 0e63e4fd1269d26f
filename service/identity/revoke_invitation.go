package identity

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// RevokeInvitation ends the code that a person was invited with, at once, also for a login that has begun by it. The
// person stays and can be invited again. Key: identity.user.create on the person's tenant. FAILED_PRECONDITION at
// userId for a person who has no open invitation.
func (s *Service) RevokeInvitation(ctx context.Context, userID ids.ID, reason string) (out *db.User, err error) {
	var input check.Input
	input.Reason("reason", reason)
	if err := input.Err(); err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		out, err = revokeInvitation(ctx, t, userID, reason)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func revokeInvitation(ctx context.Context, t *tx.Tx, userID ids.ID, reason string) (*db.User, error) {
	const action = "revokeInvitation"
	user, err := userOf(ctx, t, action, authz.UserCreate, userID)
	if err != nil {
		return nil, err
	}
	object := authz.Object{TenantID: rows.Value(user.TenantID)}
	if err := audit.Require(t, action, authz.UserCreate, object, userID); err != nil {
		return nil, err
	}
	var ended bool
	if err := t.QueryRow(ctx, `SELECT platform.end_invitations($1)`, userID).Scan(&ended); err != nil {
		return nil, fmt.Errorf("end the invitation of %s: %w", userID, err)
	}
	if !ended {
		return nil, fault.New(fault.FailedPrecondition,
			"this person has no open invitation: there was none, or it was accepted").At("userId")
	}
	before := user.InvitationEndsAt
	if user, err = t.User.Get(ctx, userID); err != nil {
		return nil, fmt.Errorf("load person %s: %w", userID, err)
	}
	return user, audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.UserCreate, Object: object,
		ObjectID: userID,
		Before:   map[string]any{"expiresAt": before}, After: map[string]any{"expiresAt": nil}, Reason: reason})
}
