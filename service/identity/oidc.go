package identity

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
)

const (
	// AttemptTTL is how long a login at the identity provider may take.
	AttemptTTL = 10 * time.Minute
	// boundTTL is how long a command line has to redeem the code of a login.
	boundTTL = 2 * time.Minute
)

// Attempt is a login at the identity provider that begins; all but ID are for the browser and the provider alone.
type Attempt struct {
	ID ids.ID
	// State comes back from the provider and names the attempt; Browser is kept by the browser that began it.
	State, Browser string
	// Nonce must be in the ID token; Verifier proves to the provider that we began the login.
	Nonce, Verifier string
	// Target is what follows the login.
	Target string
}

// Person is what the identity provider states about who logged in, verified by its signature.
type Person struct {
	Issuer, Subject, Email string
	// Verified says that the provider has verified the address.
	Verified bool
	// Attempt is the login that this belongs to; the invitation that began the login, if any, is stored with it.
	Attempt ids.ID
}

// BeginOIDC begins a login at the identity provider. target, which the caller has checked, comes back with it.
func (s *Service) BeginOIDC(ctx context.Context, target string) (*Attempt, error) {
	text, secret := token.Mint(token.Attempt)
	out := &Attempt{ID: secret.ID, State: text, Browser: random(), Nonce: random(), Verifier: random(), Target: target}
	_, err := s.DB.API().Exec(ctx, `SELECT platform.begin_oidc($1, $2, $3, $4, $5, $6, $7)`,
		secret.ID, secret.Hash, digest(out.Browser), out.Nonce, out.Verifier, target, s.DB.Now().Add(AttemptTTL))
	if err != nil {
		return nil, fmt.Errorf("begin a login: %w", err)
	}
	return out, nil
}

// AttemptOf returns the id of the attempt that a state names; UNAUTHENTICATED when it names none.
func AttemptOf(state string) (ids.ID, error) {
	secret, err := token.ParseSecret(state)
	if err != nil || secret.Kind != token.Attempt {
		return "", errAttempt().Because(err)
	}
	return secret.ID, nil
}

// errAttempt is the one answer to a login that did not begin here, was finished, or took too long.
func errAttempt() *fault.Fault {
	return fault.New(fault.Unauthenticated,
		"the login was not begun in this browser, is finished already or took too long: begin again")
}

// TakeOIDC spends the attempt that comes back: once, in time, and only for the browser that began it.
// UNAUTHENTICATED otherwise; then the attempt is left to whom it belongs.
func (s *Service) TakeOIDC(ctx context.Context, state, browser string) (*Attempt, error) {
	secret, err := token.ParseSecret(state)
	if err != nil || secret.Kind != token.Attempt {
		s.DenyLogin(ctx, fault.Unauthenticated)
		return nil, errAttempt().Because(err)
	}
	out := &Attempt{ID: secret.ID, State: state, Browser: browser}
	var nonce, verifier, target *string
	err = s.DB.API().QueryRow(ctx, `SELECT nonce, verifier, target FROM platform.take_oidc($1, $2, $3)`, secret.ID,
		secret.Hash, digest(browser)).
		Scan(&nonce, &verifier, &target)
	if err != nil {
		return nil, fmt.Errorf("finish a login: %w", err)
	}
	if nonce == nil {
		s.DenyLogin(ctx, fault.Unauthenticated)
		return nil, errAttempt()
	}
	out.Nonce, out.Verifier, out.Target = *nonce, *verifier, *target
	return out, nil
}

// OIDCSession creates a session for whom the provider vouches. A person is known by issuer and subject; the first time,
// a verified address claims the person who was added under it. LOGIN_REFUSED for everyone else.
func (s *Service) OIDCSession(ctx context.Context, person Person) (*Session, error) {
	text, secret := token.Mint(token.Session)
	out := &Session{Token: text, ExpiresAt: s.DB.Now().Add(SessionTTL)}
	who, err := s.knownBy(ctx, person, secret.ID,
		`SELECT who, outcome FROM platform.oidc_session($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
		secret.ID, secret.Hash, out.ExpiresAt, authz.Request(ctx).Origin, agentOf(ctx))
	if err != nil {
		return nil, err
	}
	out.UserID = who
	return out, nil
}

// OIDCCode creates a one-time code for the command line that began the login with the challenge; it is good for two
// minutes, for RedeemBound. LOGIN_REFUSED as of OIDCSession.
func (s *Service) OIDCCode(ctx context.Context, person Person, challenge string) (string, error) {
	text, secret := token.Mint(token.Login)
	_, err := s.knownBy(ctx, person, secret.ID,
		`SELECT who, outcome FROM platform.oidc_code($1, $2, $3, $4, $5, $6, $7, $8)`,
		secret.ID, bound(secret, challenge), s.DB.Now().Add(boundTTL))
	if err != nil {
		return "", err
	}
	return text, nil
}

// knownBy finds the person in the one transaction that also writes what the login makes, and its audit.
func (s *Service) knownBy(ctx context.Context, person Person, object ids.ID, statement string, makes ...any) (ids.ID,
	error) {
	var who *ids.ID
	var outcome string
	args := append([]any{ids.New(ids.ExternalIdentity), person.Issuer, person.Subject, person.Email, person.Verified},
		makes...)
	err := pgx.BeginFunc(ctx, s.DB.API(), func(t pgx.Tx) error {
		invitation, err := accept(ctx, t, person)
		if err != nil || invitation == "refused" {
			outcome = "uninvited"
			return err
		}
		if err := t.QueryRow(ctx, statement, args...).Scan(&who, &outcome); err != nil {
			return err
		}
		if outcome != "known" && outcome != "claimed" {
			return nil
		}
		return s.auditLogin(ctx, t, *who, object, map[string]any{"method": "oidc", "issuer": person.Issuer,
			"claimed": outcome == "claimed", "accepted": invitation == "accepted"})
	})
	if err != nil {
		return "", fmt.Errorf("log in: %w", err)
	}
	if refused := refusal(outcome); refused != nil {
		s.DenyLogin(ctx, fault.LoginRefused)
		return "", refused
	}
	return *who, nil
}

// refusal returns why a login is refused, without a hint at other people; nil when it is not.
func refusal(outcome string) error {
	switch outcome {
	case "known", "claimed":
		return nil
	case "unverified":
		return fault.New(fault.LoginRefused,
			"your identity provider has not verified your e-mail address, which the first login needs")
	case "uninvited":
		return fault.New(fault.LoginRefused,
			"this login cannot accept the invitation: log in with an account that is new here and whose verified "+
				"address is the one that was invited, or request another invitation")
	case "disabled":
		return fault.New(fault.LoginRefused, "your account is disabled: contact an administrator")
	}
	return fault.New(fault.LoginRefused,
		"this login is not known here: have an administrator invite you under the address that your identity provider "+
			"has verified")
}

// random is 32 random bytes as text that fits a URL and a cookie.
func random() string {
	var raw [32]byte
	_, _ = rand.Read(raw[:]) // never fails: crypto/rand ends the program instead
	return base64.RawURLEncoding.EncodeToString(raw[:])
}

func digest(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}
