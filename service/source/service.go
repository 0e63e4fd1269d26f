// Package source holds the verbs on artifact sources: where artifacts may come from, by what credential, and whose
// signatures count there.
package source

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/custody"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/overlay"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// maxSources bounds the sources of one owner.
const maxSources = 200

// Service holds the verbs.
type Service struct {
	DB *tx.DB
	// Vault keeps the credentials.
	Vault *custody.Vault
	// Allow checks a source's address by the operator's rules; nil allows every address. A host name is checked when it
	// is dialled. Its DIAL_REFUSED reaches the caller.
	Allow func(address *url.URL) error
}

// one reads at most one row; nil when the query finds nothing.
func one[T any](ctx context.Context, t *tx.Tx, scan func(pgx.CollectableRow) (*T, error), query string,
	args ...any) (*T, error) {
	found, err := t.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	row, err := pgx.CollectExactlyOneRow(found, scan)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return row, err
}

// owner is where the keys of a source are required: on its tenant, or on the platform.
func owner(tenantID *ids.ID) authz.Object { return authz.Object{TenantID: rows.Value(tenantID)} }

// locked loads a source for change and requires source.manage. It checks the key before the lock, which a caller that
// may only read a source cannot take. NOT_FOUND when it is missing or hidden.
func locked(ctx context.Context, t *tx.Tx, action string, id ids.ID) (*db.ArtifactSource, error) {
	found, err := one(ctx, t, rows.ArtifactSource, `SELECT `+rows.ArtifactSourceColumns+`
		FROM artifact_source WHERE id = $1`, id)
	if err != nil {
		return nil, fmt.Errorf("load source %s: %w", id, err)
	}
	if found == nil {
		return nil, audit.Missing(t, action, authz.SourceManage, id)
	}
	if err := audit.Require(t, action, authz.SourceManage, owner(found.TenantID), id); err != nil {
		return nil, err
	}
	found, err = one(ctx, t, rows.ArtifactSource, `SELECT `+rows.ArtifactSourceColumns+`
		FROM artifact_source WHERE id = $1 FOR UPDATE`, id)
	if err != nil {
		return nil, fmt.Errorf("lock source %s: %w", id, err)
	}
	if found == nil {
		return nil, audit.Missing(t, action, authz.SourceManage, id)
	}
	return found, nil
}

// permitted checks what a source covers against the policy of its tenant and the platform, or of the platform alone.
func permitted(ctx context.Context, t *tx.Tx, action string, tenantID *ids.ID, id ids.ID, location, path string) error {
	rules, err := overlay.Load(ctx, t, rows.Value(tenantID), "")
	if err != nil {
		return err
	}
	return audit.Refused(t, action, authz.SourceManage, owner(tenantID), id, rules.Location(location, path))
}

// taken returns the fault for a name or a location that another source of the same owner has, or else err.
func taken(err error, at string) error {
	for _, of := range []string{"platform", "tenant"} {
		if tx.Violates(err, "artifact_source_"+of+"_name") {
			return fault.New(fault.Conflict, "another source has this name").At("input.name").Retry(false)
		}
		if tx.Violates(err, "artifact_source_"+of+"_location") {
			return fault.New(fault.Conflict, "another source that is switched on has this location").At(at).Retry(false)
		}
	}
	return err
}

// trail is what the audit keeps of a source.
func trail(row *db.ArtifactSource) map[string]any {
	return map[string]any{"name": row.Name, "kind": row.Kind, "location": row.Location, "region": row.Region,
		"signaturePolicy": row.SignaturePolicy,
		"credentialUser":  row.CredentialUser, "credentialAt": row.CredentialAt, "disabledAt": row.DisabledAt}
}

// keyTrail is what the audit keeps of a key.
func keyTrail(row *db.SignerKey) map[string]any {
	return map[string]any{"source": row.SourceID, "name": row.Name, "fingerprint": row.Fingerprint,
		"algorithm": row.Algorithm,
		"validFrom": row.ValidFrom, "validUntil": row.ValidUntil, "revokedAt": row.RevokedAt}
}
