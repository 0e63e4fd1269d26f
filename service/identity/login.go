package identity

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
)

// SessionTTL is how long a login lasts.
const SessionTTL = 12 * time.Hour

// Session is a person's fresh login; its token is stored nowhere.
type Session struct {
	Token     string
	UserID    ids.ID
	ExpiresAt time.Time
}

// RedeemLogin turns a one-time login code into a session; the code is spent by it.
// UNAUTHENTICATED when the code is malformed, unknown, used or over.
func (s *Service) RedeemLogin(ctx context.Context, code string) (*Session, error) {
	refused := fault.New(fault.Unauthenticated, "the login code is unknown, used or over")
	spent, err := token.ParseSecret(code)
	if err != nil || spent.Kind != token.Login {
		return nil, refused.Because(err)
	}
	text, secret := token.Mint(token.Session)
	out := &Session{Token: text, ExpiresAt: s.DB.Now().Add(SessionTTL)}
	var who *ids.ID
	err = pgx.BeginFunc(ctx, s.DB.API(), func(t pgx.Tx) error {
		err := t.QueryRow(ctx, `SELECT platform.redeem_login($1, $2, $3, $4, $5)`,
			spent.ID, spent.Hash, secret.ID, secret.Hash, out.ExpiresAt).Scan(&who)
		if err != nil || who == nil {
			return err
		}
		return s.auditLogin(ctx, t, *who, secret.ID)
	})
	if err != nil {
		return nil, fmt.Errorf("redeem a login: %w", err)
	}
	if who == nil {
		return nil, refused
	}
	out.UserID = *who
	return out, nil
}

// auditLogin records a login, which asks for no permission key: the code was the permission.
func (s *Service) auditLogin(ctx context.Context, t pgx.Tx, who, session ids.ID) error {
	request := authz.Request(ctx)
	_, err := t.Exec(ctx, `INSERT INTO audit_entry (id, actor_kind, actor_id, permission_key, action, allowed, object_id, correlation_id, origin, created_at)
		VALUES ($1, 'USER', $2, '', 'login', true, $3, $4, $5, $6)`,
		ids.New(ids.Audit), who, session, request.CorrelationID, request.Origin, s.DB.Now())
	return err
}

// EndSession ends a session at once; a token that is no live session is no error, as the caller
// is logged out either way.
func (s *Service) EndSession(ctx context.Context, sessionToken string) error {
	secret, err := token.ParseSecret(sessionToken)
	if err != nil || secret.Kind != token.Session {
		return nil
	}
	if _, err := s.DB.API().Exec(ctx, `SELECT platform.end_session($1, $2)`, secret.ID, secret.Hash); err != nil {
		return fmt.Errorf("end a session: %w", err)
	}
	return nil
}
