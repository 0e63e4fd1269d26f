// Package origin finds the source that an artifact comes from: by its address where it is published, by its id where it
// is verified or delivered later. With it come the keys whose signatures count now and the way to its credential.
package origin

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/custody"
	"github.com/gpuaas/app-platform/internal/fetch"
	"github.com/gpuaas/app-platform/internal/signature"
	"github.com/gpuaas/app-platform/internal/tx"
)

// MaxKeys bounds the keys of one source, revoked and ended ones among them.
const MaxKeys = 50

// Source is a source that is switched on, with what its readers need.
type Source struct {
	ID ids.ID
	// TenantID is the tenant whose source it is; nil for the platform's.
	TenantID         *ids.ID
	Kind             lifecycle.SourceKind
	Location, Region string
	Policy           lifecycle.SignaturePolicy
	// CredentialUser is the name that goes with the sealed secret; both are empty when it is read without.
	CredentialUser string
	Sealed         []byte
	// Keys are those that count now, at most MaxKeys.
	Keys []signature.Key
	// Withheld marks a source of the platform's that is read without the platform's name or credential, for a tenant's
	// artifact that lies outside of the tenant's part of it.
	Withheld bool
}

// TenantPart is below which path of a platform's source the repositories and files of a tenant lie: only there does the
// platform show its own name for a tenant's artifact. Elsewhere it would read for one tenant what another has put
// there.
func TenantPart(location, slug string) string {
	return strings.TrimSuffix(location, "/") + "/tenants/" + slug + "/"
}

// Withhold decides whether the source is read without the platform's name, for an artifact of the tenant of a short
// name; empty for the platform's own.
func (s *Source) Withhold(ref, tenantSlug string) {
	s.Withheld = s.TenantID == nil && tenantSlug != "" && !strings.HasPrefix(ref, TenantPart(s.Location, tenantSlug))
}

const columns = `s.id, s.tenant_id, s.kind, s.location, s.region, s.signature_policy, s.credential_user, platform.source_credential(s.id)`

// Find returns the source that covers an artifact's address: among the platform's and the tenant's (nil for the
// platform's alone) that are switched on, the one of the longest location, the tenant's own before the platform's.
// SOURCE_UNKNOWN at input.ref when no source does, or when the address is not in its plain form.
func Find(ctx context.Context, t *tx.Tx, tenantID *ids.ID, ref string) (*Source, error) {
	unknown := fault.New(fault.SourceUnknown, "no artifact source that may be used here covers %.200q",
		ref).At("input.ref")
	named, file, ok := place(ref)
	if !ok {
		return nil, unknown
	}
	out, err := one(ctx, t, `SELECT `+columns+` FROM artifact_source s WHERE s.disabled_at IS NULL
		AND (s.tenant_id IS NULL OR s.tenant_id = $1)
		AND CASE WHEN s.kind = 'OCI' THEN NOT $3 AND ($2 = s.location OR starts_with($2, s.location || '/'))
			ELSE $3 AND starts_with($2, s.location) AND $2 <> s.location END
		ORDER BY length(s.location) DESC, s.tenant_id IS NULL LIMIT 1`, tenantID, named, file)
	if err == nil && out == nil {
		err = unknown
	}
	if err != nil {
		return nil, err
	}
	return out, out.withhold(ctx, t, tenantID, ref)
}

// withhold is Withhold for the artifact of a tenant by its id.
func (s *Source) withhold(ctx context.Context, t *tx.Tx, tenantID *ids.ID, ref string) error {
	var slug string
	if tenantID != nil {
		if err := t.QueryRow(ctx, `SELECT slug FROM tenant WHERE id = $1`, *tenantID).Scan(&slug); err != nil {
			return fmt.Errorf("load tenant %s: %w", *tenantID, err)
		}
	}
	s.Withhold(ref, slug)
	return nil
}

// Load reads a source by its id, for the artifact of a tenant (nil for the platform's) at an address. SOURCE_UNKNOWN,
// at no field, when it is switched off or the caller does not see it.
func Load(ctx context.Context, t *tx.Tx, id ids.ID, tenantID *ids.ID, ref string) (*Source, error) {
	out, err := one(ctx, t, `SELECT `+columns+` FROM artifact_source s WHERE s.disabled_at IS NULL AND s.id = $1`, id)
	if err == nil && out == nil {
		err = fault.New(fault.SourceUnknown, "the artifact's source is switched off, or may not be used here")
	}
	if err != nil {
		return nil, err
	}
	return out, out.withhold(ctx, t, tenantID, ref)
}

// one reads at most one source with its keys; nil when no row matches.
func one(ctx context.Context, t *tx.Tx, query string, args ...any) (*Source, error) {
	out := &Source{}
	err := t.QueryRow(ctx, query, args...).Scan(&out.ID, &out.TenantID, (*string)(&out.Kind), &out.Location,
		&out.Region, (*string)(&out.Policy), &out.CredentialUser, &out.Sealed)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("load an artifact source: %w", err)
	}
	found, err := t.Query(ctx, `SELECT id, name, public_key FROM signer_key WHERE source_id = $1 AND revoked_at IS NULL
		AND valid_from <= $2 AND (valid_until IS NULL OR valid_until > $2) ORDER BY id
		LIMIT $3`, out.ID, t.Now, MaxKeys)
	if err != nil {
		return nil, fmt.Errorf("load the keys of %s: %w", out.ID, err)
	}
	if out.Keys, err = pgx.CollectRows(found, scanKey); err != nil {
		return nil, fmt.Errorf("load the keys of %s: %w", out.ID, err)
	}
	return out, nil
}

func scanKey(row pgx.CollectableRow) (out signature.Key, err error) {
	var pem string
	if err := row.Scan((*string)(&out.ID), &out.Name, &pem); err != nil {
		return out, err
	}
	var public crypto.PublicKey
	if public, out.Fingerprint, _, err = signature.ParsePublicKey([]byte(pem)); err != nil {
		return out, fmt.Errorf("read key %s: %s", out.ID, err) // ours to mend, and no fault of the caller's input
	}
	out.Public = public
	return out, nil
}

// Associated binds a credential in custody to its source.
func Associated(id ids.ID) string { return "artifact_source|" + string(id) }

// Credential opens the source's credential; the platform's own name, or none, when it has none. It asks the keeper of
// secrets, so that no transaction may be open. UNAVAILABLE when the keeper does not answer.
func (s *Source) Credential(ctx context.Context, vault *custody.Vault) (fetch.Credential, error) {
	if s.Withheld {
		return fetch.Credential{}, nil
	}
	if s.Sealed == nil {
		return fetch.Credential{Platform: s.TenantID == nil}, nil
	}
	secret, err := vault.Open(ctx, s.Sealed, Associated(s.ID))
	if err != nil {
		return fetch.Credential{}, fmt.Errorf("open the credential of %s: %w", s.ID, custody.Told(err))
	}
	return fetch.Credential{User: s.CredentialUser, Secret: string(secret)}, nil
}
