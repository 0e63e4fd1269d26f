package source

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"time"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/signature"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/kit/origin"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// Bounds of a key: characters of its name and of its PEM.
const (
	maxKeyName = 80
	maxPEM     = 4_096
)

// KeyInput is a public key to be trusted.
type KeyInput struct {
	SourceID   ids.ID
	Name       string
	PublicKey  string
	ValidFrom  *time.Time
	ValidUntil *time.Time
	Reason     string
}

// trusted is a key as it is stored.
type trusted struct{ pem, fingerprint, algorithm string }

func (in KeyInput) check(now time.Time) (out trusted, err error) {
	var input check.Input
	input.Text("input.name", in.Name, 1, maxKeyName)
	if out, err = readKey(in.PublicKey); err != nil {
		input.Bad("input.publicKey", "must be the PEM of one PKIX public key, ECDSA P-256 or Ed25519")
	}
	input.Future("input.validUntil", in.ValidUntil, now)
	if in.ValidFrom != nil && in.ValidUntil != nil && !in.ValidUntil.After(*in.ValidFrom) {
		input.Bad("input.validUntil", "must be after validFrom")
	}
	input.Reason("input.reason", in.Reason)
	return out, input.Err()
}

// readKey reads PEM and encodes the key again, so that what is stored holds the key and nothing else.
func readKey(text string) (out trusted, err error) {
	if len(text) > maxPEM {
		return out, fmt.Errorf("must have at most %d bytes", maxPEM)
	}
	public, fingerprint, algorithm, err := signature.ParsePublicKey([]byte(text))
	if err != nil {
		return out, err
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return out, err
	}
	return trusted{string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})), fingerprint, algorithm}, nil
}

// AddKey trusts a key at a source, from now on when ValidFrom is nil. Key: source.manage on the source's tenant, or on
// the platform.
//
// Faults: INVALID_ARGUMENT naming the field, NOT_FOUND, FORBIDDEN, CONFLICT at input.publicKey when the source has the
// key already, be it revoked, LIMIT_EXCEEDED beyond 50 keys.
func (s *Service) AddKey(ctx context.Context, in KeyInput) (out *db.SignerKey, err error) {
	key, err := in.check(s.DB.Now())
	if err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		out, err = addKey(ctx, t, in, key)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func addKey(ctx context.Context, t *tx.Tx, in KeyInput, key trusted) (*db.SignerKey, error) {
	const action = "addSignerKey"
	source, err := locked(ctx, t, action, in.SourceID)
	if err != nil {
		return nil, err
	}
	var held int
	if err := t.QueryRow(ctx, `SELECT count(*) FROM signer_key
		WHERE source_id = $1`, source.ID).Scan(&held); err != nil {
		return nil, fmt.Errorf("count the keys of %s: %w", source.ID, err)
	}
	if held >= origin.MaxKeys {
		return nil, fault.New(fault.LimitExceeded, "a source may have at most %d keys, including revoked ones",
			origin.MaxKeys).At("input.sourceId")
	}
	from := t.Now
	if in.ValidFrom != nil {
		from = *in.ValidFrom
	}
	row, err := one(ctx, t, rows.SignerKey, `INSERT INTO signer_key (id, source_id, tenant_id, name, public_key,
		fingerprint, algorithm, valid_from, valid_until, created_by, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) RETURNING
		`+rows.SignerKeyColumns, ids.New(ids.SignerKey), source.ID, source.TenantID, in.Name,
		key.pem, key.fingerprint, key.algorithm, from, in.ValidUntil, string(t.Actor.ID), t.Now)
	if tx.Violates(err, "signerkey_source_id_fingerprint") {
		return nil, fault.New(fault.Conflict, "the source already has this key, %s; it may be revoked",
			key.fingerprint).At("input.publicKey").Retry(false)
	}
	if err != nil {
		return nil, fmt.Errorf("add a key to %s: %w", source.ID, err)
	}
	return row, audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.SourceManage, Object: owner(source.TenantID),
		ObjectID: row.ID,
		After:    keyTrail(row), Reason: in.Reason})
}
