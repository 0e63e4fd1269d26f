package identity

import (
	"context"
	"fmt"
	"time"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// codeTTL is how long a one-time login code can be used.
const codeTTL = 15 * time.Minute

// LoginLink is a one-time login: its code is stored nowhere.
type LoginLink struct {
	Code, URL string
	ExpiresAt time.Time
}

// CreateLoginLink mints a one-time login for a person. Key: identity.login_link.create on the
// person's tenant, or on the platform for staff. FAILED_PRECONDITION unless development logins are on.
func (s *Service) CreateLoginLink(ctx context.Context, userID ids.ID) (out *LoginLink, err error) {
	const action = "createLoginLink"
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		user, err := userOf(ctx, t, action, authz.LoginLinkCreate, userID)
		if err != nil {
			return err
		}
		object := authz.Object{TenantID: rows.Value(user.TenantID)}
		if err := audit.Require(t, action, authz.LoginLinkCreate, object, userID); err != nil {
			return err
		}
		if !s.DevLogins {
			return fault.New(fault.FailedPrecondition, "this installation does not run with development logins")
		}
		text, secret := token.Mint(token.Login)
		out = &LoginLink{Code: text, URL: s.LoginURL(text), ExpiresAt: t.Now.Add(codeTTL)}
		_, err = t.Exec(ctx, insertCode, secret.ID, userID, secret.Hash, out.ExpiresAt, t.Now)
		if err != nil {
			return fmt.Errorf("create login code: %w", err)
		}
		return audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.LoginLinkCreate, Object: object,
			ObjectID: secret.ID,
			After:    map[string]any{"userId": userID, "expiresAt": out.ExpiresAt}})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

const insertCode = `INSERT INTO login_code (id, user_id, secret_hash, expires_at, created_at)
	VALUES ($1, $2, $3, $4, $5)`

// LoginURL is the console's address with a code in its fragment, which browsers keep to themselves.
func (s *Service) LoginURL(code string) string { return s.PublicURL + "/login#code=" + code }
