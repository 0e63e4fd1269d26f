package identity

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// invitationTTL is how long an invitation can be accepted.
const invitationTTL = 7 * 24 * time.Hour

// errInvitation is the one answer to a code that is not one, or not any more.
func errInvitation() *fault.Fault {
	return fault.New(fault.Unauthenticated, "the invitation is unknown, was accepted or has ended: request another one")
}

// Invited is a code with which a person accepts an invitation; it is stored nowhere.
type Invited struct {
	Code, URL string
	ExpiresAt time.Time
}

// Invite returns a code with which a person accepts to belong to the tenant, by a login of their own whose verified
// address is the one that was invited. Codes of before end. Key: identity.user.create on the person's tenant.
// FAILED_PRECONDITION at userId for a person who waits for no acceptance.
func (s *Service) Invite(ctx context.Context, userID ids.ID) (out *Invited, err error) {
	const action = "inviteUser"
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		user, err := userOf(ctx, t, action, authz.UserCreate, userID)
		if err != nil {
			return err
		}
		object := authz.Object{TenantID: rows.Value(user.TenantID)}
		if err := audit.Require(t, action, authz.UserCreate, object, userID); err != nil {
			return err
		}
		text, secret := token.Mint(token.Invite)
		out = &Invited{Code: text, ExpiresAt: t.Now.Add(invitationTTL)}
		out.URL = s.PublicURL + "/auth/oidc/accept?" + url.Values{"invitation": {text}}.Encode()
		var invited bool
		if err := t.QueryRow(ctx, `SELECT platform.invite($1, $2, $3, $4)`, userID, secret.ID, secret.Hash,
			out.ExpiresAt).Scan(&invited); err != nil {
			return fmt.Errorf("invite %s: %w", userID, err)
		}
		if !invited {
			return fault.New(fault.FailedPrecondition,
				"this person has accepted, needs no invitation, or is disabled").At("userId")
		}
		return audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.UserCreate, Object: object, ObjectID: userID,
			After: map[string]any{"expiresAt": out.ExpiresAt}})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// InvitationOf returns the name of the tenant that invites; UNAUTHENTICATED for a code that is unknown, was accepted or
// has ended.
func (s *Service) InvitationOf(ctx context.Context, code string) (string, error) {
	secret, err := token.ParseSecret(code)
	if err != nil || secret.Kind != token.Invite {
		return "", errInvitation()
	}
	var tenant *string
	if err := s.DB.API().QueryRow(ctx, `SELECT platform.invitation_of($1, $2)`, secret.ID,
		secret.Hash).Scan(&tenant); err != nil {
		return "", fmt.Errorf("find an invitation: %w", err)
	}
	if tenant == nil {
		return "", errInvitation()
	}
	return *tenant, nil
}

// Accepting notes that a login at the identity provider was begun by an invitation. It does not return whether the
// invitation is valid.
func (s *Service) Accepting(ctx context.Context, attempt ids.ID, code string) error {
	secret, err := token.ParseSecret(code)
	if err != nil || secret.Kind != token.Invite {
		return errInvitation()
	}
	if _, err := s.DB.API().Exec(ctx, `SELECT platform.begin_invited($1, $2, $3)`, attempt, secret.ID,
		secret.Hash); err != nil {
		return fmt.Errorf("begin with an invitation: %w", err)
	}
	return nil
}

// accept accepts the invitation that the person's login was begun by: "none" without an invitation, "accepted", or
// "refused".
func accept(ctx context.Context, t pgx.Tx, person Person) (outcome string, err error) {
	err = t.QueryRow(ctx, `SELECT platform.accept_invited($1, $2, $3, $4, $5)`, person.Attempt, person.Issuer,
		person.Subject, person.Email, person.Verified).
		Scan(&outcome)
	return outcome, err
}
