package identity

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
)

const (
	// SessionTTL is how long a login lasts, however often its secret turns over.
	SessionTTL = 12 * time.Hour
	// RotateAfter is how old a browser's session secret may get.
	RotateAfter = time.Hour
)

// maxAgent bounds what a client calls itself, in characters.
const maxAgent = 120

// Session is a person's fresh login; its token is stored nowhere.
type Session struct {
	Token     string
	UserID    ids.ID
	ExpiresAt time.Time
}

// RedeemLogin turns a one-time code into a session; the code is spent by it. A bootstrap's code is of a kind of its
// own, which only an administrator of the database can mint, and is redeemed everywhere; a login link's is
// LOGIN_REFUSED unless development logins are on. UNAUTHENTICATED when the code is malformed, unknown, used or over, or
// its person is disabled.
func (s *Service) RedeemLogin(ctx context.Context, code string) (*Session, error) {
	plain := func(secret token.Secret) []byte { return secret.Hash }
	if spent, err := token.ParseSecret(code); err == nil && spent.Kind == token.Bootstrap {
		return s.redeem(ctx, code, token.Bootstrap, "bootstrap", plain)
	}
	if !s.DevLogins {
		s.DenyLogin(ctx, fault.LoginRefused)
		return nil, fault.New(fault.LoginRefused,
			"this installation has no login links: log in at the identity provider")
	}
	return s.redeem(ctx, code, token.Login, "link", plain)
}

// RedeemBound turns the one-time code that a login at the identity provider gave to a command line into a
// session. verifier proves that it is the command line that began the login. UNAUTHENTICATED as of RedeemLogin.
func (s *Service) RedeemBound(ctx context.Context, code, verifier string) (*Session, error) {
	sum := sha256.Sum256([]byte(verifier))
	challenge := base64.RawURLEncoding.EncodeToString(sum[:])
	return s.redeem(ctx, code, token.Login, "oidc", func(secret token.Secret) []byte {
		return bound(secret, challenge)
	})
}

// bound is the hash of a code that is good only with the verifier of a challenge.
func bound(secret token.Secret, challenge string) []byte {
	sum := sha256.Sum256(append(secret.Hash, challenge...))
	return sum[:]
}

func (s *Service) redeem(ctx context.Context, code string, kind token.Kind, method string,
	hash func(token.Secret) []byte) (*Session, error) {
	refused := fault.New(fault.Unauthenticated, "the login code is unknown, used or expired")
	spent, err := token.ParseSecret(code)
	if err != nil || spent.Kind != kind {
		s.DenyLogin(ctx, fault.Unauthenticated)
		return nil, refused.Because(err)
	}
	text, secret := token.Mint(token.Session)
	out := &Session{Token: text, ExpiresAt: s.DB.Now().Add(SessionTTL)}
	var who *ids.ID
	err = pgx.BeginFunc(ctx, s.DB.API(), func(t pgx.Tx) error {
		request := authz.Request(ctx)
		err := t.QueryRow(ctx, `SELECT platform.redeem_login($1, $2, $3, $4, $5, $6, $7, $8)`, spent.ID, hash(spent),
			secret.ID, secret.Hash,
			out.ExpiresAt, method, request.Origin, agentOf(ctx)).Scan(&who)
		if err != nil || who == nil {
			return err
		}
		return s.auditLogin(ctx, t, *who, secret.ID, map[string]any{"method": method})
	})
	if err != nil {
		return nil, fmt.Errorf("redeem a login: %w", err)
	}
	if who == nil {
		s.DenyLogin(ctx, fault.Unauthenticated)
		return nil, refused
	}
	out.UserID = *who
	return out, nil
}

// agentOf is what the client calls itself, cut short and without what could not be shown.
func agentOf(ctx context.Context) string {
	agent := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError {
			return -1
		}
		return r
	}, authz.Request(ctx).Agent)
	if cut := []rune(agent); len(cut) > maxAgent {
		return string(cut[:maxAgent])
	}
	return agent
}

// auditLogin records a login, which needs no permission key: the proof of identity was the permission.
func (s *Service) auditLogin(ctx context.Context, t pgx.Tx, who, object ids.ID, after map[string]any) error {
	encoded, err := json.Marshal(after)
	if err != nil {
		return fmt.Errorf("encode for the audit: %w", err)
	}
	request := authz.Request(ctx)
	_, err = t.Exec(ctx, `INSERT INTO audit_entry (id, actor_kind, actor_id, permission_key, action, allowed, object_id,
		after, correlation_id, origin, created_at, trace_id)
		VALUES ($1, 'USER', $2, '', 'login', true, $3, $4, $5, $6, $7, $8)`,
		ids.New(ids.Audit), who, object, encoded, request.CorrelationID, request.Origin, s.DB.Now(), request.TraceID)
	if err != nil {
		return fmt.Errorf("write the audit: %w", err)
	}
	return nil
}

// DenyLogin records a login that was refused; repeats from one address are counted in one row.
func (s *Service) DenyLogin(ctx context.Context, code fault.Code) {
	s.deny(ctx, "login", code)
}

// deny records a refusal of a person who is not known.
func (s *Service) deny(ctx context.Context, action string, code fault.Code) {
	s.DB.Deny(tx.Denial{Request: authz.Request(ctx), Action: action, Code: string(code), At: s.DB.Now()})
}

// EndSession ends a session at once, with the one that took its place; a token that is not a live session is not an
// error, as the caller is logged out either way.
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

// RefreshSession gives a session a new secret when the one shown is older than RotateAfter: the old one works
// for a minute more. The answer's Token is empty when nothing was replaced. UNAUTHENTICATED when the session
// holds no more.
func (s *Service) RefreshSession(ctx context.Context, sessionToken string) (*Session, error) {
	shown, err := token.ParseSecret(sessionToken)
	if err != nil || shown.Kind != token.Session {
		return nil, fault.New(fault.Unauthenticated, "the session is unknown, ended or expired").Because(err)
	}
	credential, err := tx.ParseCredential(sessionToken, s.Keys, s.DB.Now())
	if err != nil {
		return nil, err
	}
	actor, err := s.DB.Read(tx.WithCredential(ctx, credential))
	if err != nil {
		return nil, err
	}
	out := &Session{UserID: actor.ID, ExpiresAt: actor.ExpiresAt}
	rotateAfter := s.RotateAfter
	if rotateAfter == 0 {
		rotateAfter = RotateAfter
	}
	if s.DB.Now().Sub(shown.ID.MintedAt()) < rotateAfter {
		return out, nil
	}
	text, secret := token.Mint(token.Session)
	var ends *time.Time
	err = s.DB.API().QueryRow(ctx, `SELECT platform.rotate_session($1, $2, $3, $4)`, shown.ID, shown.Hash, secret.ID,
		secret.Hash).Scan(&ends)
	if err != nil {
		return nil, fmt.Errorf("rotate a session: %w", err)
	}
	if ends != nil { // else another of the browser's pages was faster
		out.Token, out.ExpiresAt = text, *ends
	}
	return out, nil
}
