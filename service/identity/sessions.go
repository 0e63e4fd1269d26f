package identity

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// maxSessions bounds the sessions that are listed; fewer can be live.
const maxSessions = 100

// sessionColumns are all but the hash, which no caller's login role can read.
const sessionColumns = `id, user_id, method, origin, agent, created_at, expires_at`

func scanSession(row pgx.CollectableRow) (*SessionView, error) {
	x := new(SessionView)
	return x, row.Scan(&x.ID, &x.UserID, &x.Method, &x.Origin, &x.Agent, &x.CreatedAt, &x.ExpiresAt)
}

// Sessions lists the caller's own open sessions, newest first, at most 100; none for machines. A session whose
// secret was replaced is listed as the one that took its place.
func (s *Service) Sessions(ctx context.Context) ([]*SessionView, error) {
	credential, _ := tx.CredentialFrom(ctx)
	var found []*SessionView
	actor, err := s.DB.Read(ctx)
	if err != nil || actor.Kind != authz.KindUser {
		return found, err
	}
	_, err = s.DB.Read(ctx, tx.Rows(&found, scanSession, `SELECT `+sessionColumns+` FROM session
		WHERE user_id = $1 AND revoked_at IS NULL AND replaced_by IS NULL AND expires_at > $2 ORDER BY id DESC
		LIMIT $3`,
		actor.ID, s.DB.Now(), maxSessions))
	for _, session := range found {
		session.Current = session.ID == credential.RowID()
	}
	return found, err
}

// RevokeSession ends one of the caller's own sessions at once, and returns it; one that has ended already is returned
// as it is. NOT_FOUND for anyone else's.
func (s *Service) RevokeSession(ctx context.Context, id ids.ID) (out *SessionView, err error) {
	const action = "endSession"
	credential, _ := tx.CredentialFrom(ctx)
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		rows, err := t.Query(ctx, `SELECT `+sessionColumns+` FROM session WHERE id = $1
			AND user_id = $2`, id, t.Actor.ID)
		if err != nil {
			return fmt.Errorf("load session %s: %w", id, err)
		}
		out, err = pgx.CollectOneRow(rows, scanSession)
		if gone(err) {
			return audit.Missing(t, action, authz.UserLogout, id)
		}
		if err != nil {
			return fmt.Errorf("load session %s: %w", id, err)
		}
		out.Current = out.ID == credential.RowID()
		ended, err := t.Exec(ctx, `UPDATE session SET revoked_at = $2 WHERE revoked_at IS NULL AND (id = $1
			OR id = (SELECT replaced_by FROM session WHERE id = $1) OR replaced_by = $1)`, id, t.Now)
		if err != nil {
			return fmt.Errorf("end session %s: %w", id, err)
		}
		if ended.RowsAffected() == 0 {
			return nil
		}
		return audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.UserLogout,
			Object:   authz.Object{TenantID: t.Actor.TenantID},
			ObjectID: id, After: map[string]any{"userId": out.UserID, "revokedAt": t.Now}})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// LogoutEverywhere ends every session of a person, nil for the caller, and returns how many ended. For oneself always;
// for others the key is identity.user.logout on the person's tenant, or on the platform for staff.
func (s *Service) LogoutEverywhere(ctx context.Context, userID *ids.ID, reason string) (ended int, err error) {
	var input check.Input
	input.Reason("reason", reason)
	if err := input.Err(); err != nil {
		return 0, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		ended, err = logoutEverywhere(ctx, t, userID, reason)
		return err
	})
	if err != nil {
		return 0, err
	}
	return ended, nil
}

func logoutEverywhere(ctx context.Context, t *tx.Tx, userID *ids.ID, reason string) (int, error) {
	const action = "logoutEverywhere"
	who := t.Actor.ID
	if userID != nil {
		who = *userID
	}
	if userID == nil && t.Actor.Kind != authz.KindUser {
		return 0, fault.New(fault.InvalidArgument, "only people have sessions: name a person in userId").At("userId")
	}
	user, err := userOf(ctx, t, action, authz.UserLogout, who)
	if err != nil {
		return 0, err
	}
	object := authz.Object{TenantID: rows.Value(user.TenantID)}
	if user.ID != t.Actor.ID {
		if err := audit.Require(t, action, authz.UserLogout, object, user.ID); err != nil {
			return 0, err
		}
	}
	ended, err := endSessions(ctx, t, user.ID)
	if err != nil {
		return 0, err
	}
	return ended, audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.UserLogout, Object: object,
		ObjectID: user.ID, After: map[string]any{"sessionsEnded": ended}, Reason: reason})
}
