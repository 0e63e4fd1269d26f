package identity

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// Bounds of the token that a key is exchanged for.
const (
	MinExchange = 5 * time.Minute
	MaxExchange = time.Hour
)

// maxScope bounds the keys that a token is narrowed to, so that it fits a header.
const maxScope = 100

// Exchanged is a short-lived token that speaks for a service account.
type Exchanged struct {
	Token     string
	ExpiresAt time.Time
	// PermissionKeys are what it may use.
	PermissionKeys []string
}

// Exchange issues a short-lived signed token for the key of a service account. It speaks for the account with the keys
// named, or with all that the account has then and later; it is verified without the database, ends with its key, and
// is revoked with it. UNAUTHENTICATED when the key does not hold; FORBIDDEN for any other credential; INVALID_ARGUMENT
// at expires_in and scope.
func (s *Service) Exchange(ctx context.Context, key string, ttl time.Duration, keys []string) (out *Exchanged,
	err error) {
	const action = "exchangeKey"
	if ttl < MinExchange || ttl > MaxExchange {
		return nil, fault.New(fault.InvalidArgument, "expires_in must be %d to %d seconds", int(MinExchange.Seconds()),
			int(MaxExchange.Seconds())).At("expires_in")
	}
	if s.Keys == nil {
		return nil, fault.New(fault.FailedPrecondition, "this server signs no tokens")
	}
	if len(keys) > maxScope {
		return nil, fault.New(fault.InvalidArgument, "scope may name at most %d permission keys", maxScope).At("scope")
	}
	credential, err := tx.ParseCredential(key, s.Keys, s.DB.Now())
	if err != nil {
		s.deny(ctx, action, fault.From(err).Code)
		return nil, err
	}
	err = s.DB.Write(tx.WithCredential(ctx, credential), func(ctx context.Context, t *tx.Tx) error {
		object := authz.Object{TenantID: t.Actor.TenantID, ProjectID: t.Actor.ProjectID}
		if !credential.IsServiceKey() {
			return audit.Refused(t, action, authz.ServiceAccountKeyCreate, object, credential.RowID(),
				fault.New(fault.Forbidden, "only a service account's key is exchanged for a token"))
		}
		held := t.Actor.Holds(object.TenantID, object.ProjectID).Names()
		for _, key := range keys {
			if !slices.Contains(held, key) {
				return fault.New(fault.InvalidArgument, "the service account does not have %.80q", key).At("scope")
			}
		}
		out = &Exchanged{ExpiresAt: t.Now.Add(ttl).Truncate(time.Second), PermissionKeys: held}
		if ends := t.Actor.ExpiresAt; !ends.IsZero() && ends.Before(out.ExpiresAt) {
			out.ExpiresAt = ends.Truncate(time.Second)
		}
		if len(keys) > 0 {
			out.PermissionKeys = keys
		}
		slices.Sort(out.PermissionKeys)
		out.Token, err = s.Keys.Sign(token.Claims{ServiceKey: credential.RowID(), Keys: keys, ExpiresAt: out.ExpiresAt},
			t.Now)
		if err != nil {
			return fmt.Errorf("exchange a key: %w", err)
		}
		return audit.Write(ctx, t, audit.Entry{Action: action, Object: object, ObjectID: credential.RowID(),
			After: map[string]any{"expiresAt": out.ExpiresAt, "permissionKeys": out.PermissionKeys}})
	})
	if err != nil {
		if fault.Is(err, fault.Unauthenticated) {
			s.deny(ctx, action, fault.Unauthenticated)
		}
		return nil, err
	}
	return out, nil
}
