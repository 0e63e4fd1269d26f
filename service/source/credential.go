package source

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/custody"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/kit/origin"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// Bounds of a credential, in characters.
const (
	maxUser   = 200
	maxSecret = 4_096
)

// CredentialInput is a source's credential; both empty removes it.
type CredentialInput struct {
	SourceID     ids.ID
	User, Secret string
	Reason       string
}

func (in CredentialInput) check() error {
	var input check.Input
	if in.User != "" || in.Secret != "" {
		input.Text("input.user", in.User, 1, maxUser)
		if strings.Contains(in.User, ":") {
			input.Bad("input.user", "must not contain a colon")
		}
		// A key file of several lines is a secret too.
		if n := utf8.RuneCountInString(in.Secret); n < 1 || n > maxSecret || !utf8.ValidString(in.Secret) ||
			strings.ContainsRune(in.Secret, 0) {
			input.Bad("input.secret", "must have 1 to %d characters", maxSecret)
		}
	}
	input.Reason("input.reason", in.Reason)
	return input.Err()
}

// SetCredential replaces a source's credential, or removes it. The credential goes into custody and is never
// shown. Key: source.manage on the source's tenant, or on the platform.
//
// The keeper of secrets is called between two transactions, as it may be slow: the first authorises the caller.
// Faults: INVALID_ARGUMENT naming the field, NOT_FOUND, FORBIDDEN, UNAVAILABLE when the keeper does not answer.
func (s *Service) SetCredential(ctx context.Context, in CredentialInput) (out *db.ArtifactSource, err error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	err = s.Vault.Prepared(ctx, func(fresh *custody.Fresh) error {
		return s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
			out, err = setCredential(ctx, t, in, fresh)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func setCredential(ctx context.Context, t *tx.Tx, in CredentialInput, fresh *custody.Fresh) (*db.ArtifactSource,
	error) {
	const action = "setSourceCredential"
	before, err := locked(ctx, t, action, in.SourceID)
	if err != nil {
		return nil, err
	}
	var sealed []byte
	var keeper string
	at := &t.Now
	switch {
	case in.Secret == "":
		at = nil
	case fresh == nil:
		return nil, custody.ErrUnprepared
	default:
		keeper = fresh.Keeper()
		if sealed, err = fresh.Seal([]byte(in.Secret), origin.Associated(before.ID)); err != nil {
			return nil, err
		}
	}
	after, err := one(ctx, t, rows.ArtifactSource, `UPDATE artifact_source SET credential_user = $2, credential = $3,
		keeper = $4, credential_at = $5 WHERE id = $1
		RETURNING `+rows.ArtifactSourceColumns, before.ID, in.User, sealed, keeper, at)
	if err != nil {
		return nil, fmt.Errorf("set the credential of %s: %w", before.ID, err)
	}
	return after, audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.SourceManage,
		Object: owner(before.TenantID), ObjectID: before.ID,
		Before: trail(before), After: trail(after), Reason: in.Reason})
}
