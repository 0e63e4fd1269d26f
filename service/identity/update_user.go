package identity

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbuser "github.com/gpuaas/app-platform/ent/generated/db/user"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// UpdateUserInput is what changes of a person; nil parts stay.
type UpdateUserInput struct {
	UserID      ids.ID
	DisplayName *string
	Disabled    *bool
	Reason      string
}

// UpdateUser renames, disables or enables a person; disabling ends every session at once. Key: identity.user.update on
// the person's tenant, or on the platform for staff. FAILED_PRECONDITION for callers that would disable themselves.
func (s *Service) UpdateUser(ctx context.Context, in UpdateUserInput) (out *db.User, err error) {
	var input check.Input
	if in.DisplayName != nil {
		input.Text("input.displayName", *in.DisplayName, 1, 100)
	}
	if in.DisplayName == nil && in.Disabled == nil {
		input.Bad("input", "displayName, disabled or both must be given")
	}
	input.Reason("input.reason", in.Reason)
	if err := input.Err(); err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		out, err = updateUser(ctx, t, in)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func updateUser(ctx context.Context, t *tx.Tx, in UpdateUserInput) (*db.User, error) {
	const action = "updateUser"
	seen, err := userOf(ctx, t, action, authz.UserUpdate, in.UserID)
	if err != nil {
		return nil, err
	}
	object := authz.Object{TenantID: rows.Value(seen.TenantID)}
	if err := audit.Require(t, action, authz.UserUpdate, object, seen.ID); err != nil {
		return nil, err
	}
	if rows.Value(in.Disabled) && seen.ID == t.Actor.ID {
		return nil, audit.Refused(t, action, authz.UserUpdate, object, seen.ID,
			fault.New(fault.FailedPrecondition,
				"you cannot disable yourself: have another administrator do it").At("input.disabled"))
	}
	row, err := t.User.Query().Where(dbuser.ID(seen.ID)).ForUpdate().Only(ctx)
	if err != nil {
		return nil, fmt.Errorf("lock person %s: %w", seen.ID, err)
	}
	before := person(row)
	change := row.Update()
	if in.DisplayName != nil {
		change.SetDisplayName(*in.DisplayName)
	}
	switch {
	case in.Disabled == nil:
	case !*in.Disabled:
		change.ClearDisabledAt()
	case row.DisabledAt == nil:
		change.SetDisabledAt(t.Now)
	}
	if row, err = change.Save(ctx); err != nil {
		return nil, fmt.Errorf("change person %s: %w", seen.ID, err)
	}
	after := person(row)
	if row.DisabledAt != nil {
		if after["sessionsEnded"], err = endSessions(ctx, t, row.ID); err != nil {
			return nil, err
		}
	}
	return row, audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.UserUpdate, Object: object, ObjectID: row.ID,
		Before: before, After: after, Reason: in.Reason})
}

// person is what the audit keeps of one.
func person(row *db.User) map[string]any {
	return map[string]any{"displayName": row.DisplayName, "disabledAt": row.DisabledAt}
}

// endSessions ends every session of a person; it returns how many.
func endSessions(ctx context.Context, t *tx.Tx, userID ids.ID) (int, error) {
	ended, err := t.Exec(ctx,
		`UPDATE session SET revoked_at = $2 WHERE user_id = $1 AND revoked_at IS NULL
			AND expires_at > $2`, userID, t.Now)
	if err != nil {
		return 0, fmt.Errorf("end the sessions of %s: %w", userID, err)
	}
	return int(ended.RowsAffected()), nil
}
