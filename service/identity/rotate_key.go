package identity

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// maxOverlap bounds how long a rotated key works beside the new one, in seconds: a week.
const maxOverlap = 604_800

// RotateKeyInput says which key is rotated, and how.
type RotateKeyInput struct {
	KeyID          ids.ID
	OverlapSeconds int
	ExpiresAt      *time.Time // nil for as long after its making as the old one had
	Reason         string
}

// RotateServiceAccountKey creates a key in the place of another, which works on until the overlap ends. Keys:
// identity.service_account.key.create and .revoke on the project, and every key that the account holds.
// FAILED_PRECONDITION when the old one holds no more, or was rotated already.
func (s *Service) RotateServiceAccountKey(ctx context.Context, in RotateKeyInput) (key *db.ServiceAccountKey,
	secret string, err error) {
	var input check.Input
	if in.OverlapSeconds < 0 || in.OverlapSeconds > maxOverlap {
		input.Bad("input.overlapSeconds", "must be 0 to %d", maxOverlap)
	}
	input.Future("input.expiresAt", in.ExpiresAt, s.DB.Now())
	s.longest(&input, "input.expiresAt", in.ExpiresAt)
	input.Reason("input.reason", in.Reason)
	if err := input.Err(); err != nil {
		return nil, "", err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		key, secret, err = s.rotateKey(ctx, t, in)
		return err
	})
	if err != nil {
		return nil, "", err
	}
	return key, secret, nil
}

func (s *Service) rotateKey(ctx context.Context, t *tx.Tx, in RotateKeyInput) (*db.ServiceAccountKey, string, error) {
	const action = "rotateServiceAccountKey"
	seen, err := keyOf(ctx, t, `SELECT `+rows.ServiceAccountKeyColumns+`
		FROM service_account_key WHERE id = $1`, in.KeyID)
	if gone(err) {
		return nil, "", audit.Missing(t, action, authz.ServiceAccountKeyCreate, in.KeyID)
	}
	if err != nil {
		return nil, "", err
	}
	account, err := lockAccount(ctx, t, action, authz.ServiceAccountKeyCreate, seen.ServiceAccountID)
	if err != nil {
		return nil, "", err
	}
	object := authz.Object{TenantID: account.TenantID, ProjectID: account.ProjectID}
	if err := audit.Require(t, action, authz.ServiceAccountKeyRevoke, object, in.KeyID); err != nil {
		return nil, "", err
	}
	if err := delegates(t, action, account); err != nil {
		return nil, "", err
	}
	old, err := keyOf(ctx, t, `SELECT `+rows.ServiceAccountKeyColumns+`
		FROM service_account_key WHERE id = $1 FOR UPDATE`, in.KeyID)
	if err != nil {
		return nil, "", err
	}
	if err := rotatable(old, t.Now); err != nil {
		return nil, "", audit.Refused(t, action, authz.ServiceAccountKeyCreate, object, old.ID, err)
	}
	if in.ExpiresAt == nil && old.ExpiresAt != nil {
		as := t.Now.Add(old.ExpiresAt.Sub(old.CreatedAt))
		in.ExpiresAt = &as
	}
	key, text, err := s.mintKey(ctx, t, account, in.ExpiresAt)
	if err != nil {
		return nil, "", err
	}
	ends, err := replace(ctx, t, old, key.ID, in.OverlapSeconds)
	if err != nil {
		return nil, "", err
	}
	return key, text, audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.ServiceAccountKeyCreate,
		Object: object, ObjectID: key.ID,
		Before: map[string]any{"serviceAccountId": account.ID, "keyId": old.ID, "expiresAt": old.ExpiresAt},
		After:  map[string]any{"keyId": key.ID, "expiresAt": key.ExpiresAt, "oldEndsAt": ends}, Reason: in.Reason})
}

// rotatable refuses a key that holds no more, or whose successor is there.
func rotatable(old *db.ServiceAccountKey, now time.Time) error {
	switch {
	case old.RevokedAt != nil:
		return fault.New(fault.FailedPrecondition, "the key was revoked: create a new one").At("input.keyId")
	case old.ExpiresAt != nil && !old.ExpiresAt.After(now):
		return fault.New(fault.FailedPrecondition, "the key has expired: create a new one").At("input.keyId")
	case old.ReplacedBy != nil:
		return fault.New(fault.FailedPrecondition, "the key was rotated already: %s replaces it",
			*old.ReplacedBy).At("input.keyId")
	}
	return nil
}

// replace notes who takes a key's place, and answers when it ends: at the end of the overlap, or before by itself.
func replace(ctx context.Context, t *tx.Tx, old *db.ServiceAccountKey, by ids.ID, overlapSeconds int) (time.Time,
	error) {
	ends := t.Now.Add(time.Duration(overlapSeconds) * time.Second)
	if old.ExpiresAt != nil && old.ExpiresAt.Before(ends) {
		ends = *old.ExpiresAt
	}
	_, err := t.Exec(ctx, `UPDATE service_account_key SET replaced_by = $2, expires_at = $3 WHERE id = $1`, old.ID, by,
		ends)
	if err == nil && overlapSeconds == 0 {
		_, err = t.Exec(ctx, `UPDATE service_account_key SET revoked_at = $2 WHERE id = $1`, old.ID, t.Now)
	}
	if err != nil {
		return ends, fmt.Errorf("end key %s: %w", old.ID, err)
	}
	return ends, nil
}

func keyOf(ctx context.Context, t *tx.Tx, statement string, id ids.ID) (*db.ServiceAccountKey, error) {
	found, err := t.Query(ctx, statement, id)
	if err != nil {
		return nil, fmt.Errorf("load key %s: %w", id, err)
	}
	key, err := pgx.CollectOneRow(found, rows.ServiceAccountKey)
	if err != nil {
		return nil, fmt.Errorf("load key %s: %w", id, err)
	}
	return key, nil
}
