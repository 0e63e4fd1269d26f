package identity

import (
	"context"
	"fmt"
	"time"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/kit/maker"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// maxKeys bounds the live keys of a service account, and the keys that are listed.
const maxKeys = 100

// CreateServiceAccountKey creates a key and returns its secret, which is stored nowhere. Key:
// identity.service_account.key.create on the project, and every key that the account holds. It ends at the latest after
// the installation's longest life of keys, which is also its life without expiresAt, and when the caller can first not
// create it any more. INVALID_ARGUMENT at input.expiresAt beyond the longest life, LIMIT_EXCEEDED beyond 100 live keys.
func (s *Service) CreateServiceAccountKey(ctx context.Context, accountID ids.ID,
	expiresAt *time.Time) (key *db.ServiceAccountKey, secret string, err error) {
	var input check.Input
	input.Future("input.expiresAt", expiresAt, s.DB.Now())
	s.longest(&input, "input.expiresAt", expiresAt)
	if err := input.Err(); err != nil {
		return nil, "", err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		const action = "createServiceAccountKey"
		account, err := lockAccount(ctx, t, action, authz.ServiceAccountKeyCreate, accountID)
		if err != nil {
			return err
		}
		if err := delegates(t, action, account); err != nil {
			return err
		}
		if key, secret, err = s.mintKey(ctx, t, account, expiresAt); err != nil {
			return err
		}
		return audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.ServiceAccountKeyCreate,
			Object: authz.Object{TenantID: account.TenantID, ProjectID: account.ProjectID}, ObjectID: key.ID,
			After: map[string]any{"serviceAccountId": account.ID, "expiresAt": key.ExpiresAt, "makerId": key.MakerID,
				"madeUnder": key.MadeUnder}})
	})
	if err != nil {
		return nil, "", err
	}
	return key, secret, nil
}

// delegates refuses a caller that lacks a key of the account: the holder of its secret has them all.
func delegates(t *tx.Tx, action string, account *db.ServiceAccount) error {
	object := authz.Object{TenantID: account.TenantID, ProjectID: account.ProjectID}
	err := authz.RequireDelegate(t.Actor, account.PermissionKeys, object.TenantID, object.ProjectID)
	return audit.Refused(t, action, authz.ServiceAccountKeyCreate, object, account.ID, err)
}

// longest refuses an end beyond the longest life of keys.
func (s *Service) longest(input *check.Input, path string, expiresAt *time.Time) {
	if s.KeyLife > 0 && expiresAt != nil && expiresAt.After(s.DB.Now().Add(s.KeyLife)) {
		input.Bad(path, "must be at most %d hours from now, as in this installation no key lives longer",
			int(s.KeyLife.Hours()))
	}
}

// mintKey creates a key. It ends at the requested time, after the longest life, or when its maker could first not
// create it any more, whichever is first.
func (s *Service) mintKey(ctx context.Context, t *tx.Tx, account *db.ServiceAccount,
	expiresAt *time.Time) (*db.ServiceAccountKey, string, error) {
	from, err := maker.Of(ctx, t, gives(authz.ServiceAccountKeyCreate, account.PermissionKeys,
		authz.Object{TenantID: account.TenantID, ProjectID: account.ProjectID}))
	if err != nil {
		return nil, "", err
	}
	if s.KeyLife > 0 {
		expiresAt = earlier(expiresAt, t.Now.Add(s.KeyLife))
	}
	if !from.Ends.IsZero() {
		expiresAt = earlier(expiresAt, from.Ends)
	}
	return storeKey(ctx, t, account, expiresAt, from)
}

// earlier is the earlier of two ends, of which the first may be missing.
func earlier(end *time.Time, other time.Time) *time.Time {
	if end != nil && end.Before(other) {
		return end
	}
	return &other
}

func storeKey(ctx context.Context, t *tx.Tx, account *db.ServiceAccount, expiresAt *time.Time,
	from maker.Source) (*db.ServiceAccountKey, string, error) {
	var live int
	err := t.QueryRow(ctx, `SELECT count(id) FROM service_account_key WHERE service_account_id = $1
		AND revoked_at IS NULL
		AND (expires_at IS NULL OR expires_at > $2)`, account.ID, t.Now).Scan(&live)
	if err != nil {
		return nil, "", fmt.Errorf("count keys: %w", err)
	}
	if live >= maxKeys {
		return nil, "", fault.New(fault.LimitExceeded,
			"a service account may have at most %d live keys: revoke one first", maxKeys).At("input.serviceAccountId")
	}
	text, secret := token.Mint(token.Key)
	_, err = t.Exec(ctx, `INSERT INTO service_account_key (id, tenant_id, project_id, service_account_id, secret_hash,
		expires_at, maker_id, made_under, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`, secret.ID, account.TenantID, account.ProjectID, account.ID,
		secret.Hash, expiresAt, from.Maker, from.Under, t.Now)
	if err != nil {
		return nil, "", fmt.Errorf("create key: %w", err)
	}
	key := &db.ServiceAccountKey{ID: secret.ID, TenantID: account.TenantID, ProjectID: account.ProjectID,
		ServiceAccountID: account.ID,
		ExpiresAt:        expiresAt, MakerID: from.Maker, MadeUnder: from.Under, CreatedAt: t.Now}
	return key, text, nil
}

// RevokeServiceAccountKey ends a key at once. Key: identity.service_account.key.revoke on the
// project. A key that was revoked before is answered as it is.
func (s *Service) RevokeServiceAccountKey(ctx context.Context, id ids.ID, reason string) (out *db.ServiceAccountKey,
	err error) {
	var input check.Input
	input.Reason("reason", reason)
	if err := input.Err(); err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		out, err = revokeKey(ctx, t, id, reason)
		return err
	})
	return out, err
}

func revokeKey(ctx context.Context, t *tx.Tx, id ids.ID, reason string) (*db.ServiceAccountKey, error) {
	const action = "revokeServiceAccountKey"
	key, err := keyOf(ctx, t, `SELECT `+rows.ServiceAccountKeyColumns+`
		FROM service_account_key WHERE id = $1 FOR UPDATE`, id)
	if gone(err) {
		return nil, audit.Missing(t, action, authz.ServiceAccountKeyRevoke, id)
	}
	if err != nil {
		return nil, err
	}
	object := authz.Object{TenantID: key.TenantID, ProjectID: key.ProjectID}
	if err := audit.Require(t, action, authz.ServiceAccountKeyRevoke, object, id); err != nil {
		return nil, err
	}
	if key.RevokedAt != nil {
		return key, nil
	}
	if _, err := t.Exec(ctx, `UPDATE service_account_key SET revoked_at = $2 WHERE id = $1`, id, t.Now); err != nil {
		return nil, fmt.Errorf("revoke key %s: %w", id, err)
	}
	key.RevokedAt = &t.Now
	return key, audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.ServiceAccountKeyRevoke, Object: object,
		ObjectID: id,
		Before:   map[string]any{"serviceAccountId": key.ServiceAccountID, "revokedAt": nil},
		After:    map[string]any{"revokedAt": t.Now}, Reason: reason})
}
