package source

import (
	"context"
	"fmt"
	"net/url"
	"slices"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/kit/idem"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// standardRegion is the region of an object store that has none of its own.
const standardRegion = "us-east-1"

// CreateInput describes a new source.
type CreateInput struct {
	TenantID        *ids.ID // nil for the platform's
	Name            string
	Kind            lifecycle.SourceKind
	Location        string
	Region          string
	SignaturePolicy lifecycle.SignaturePolicy
	IdempotencyKey  string `json:"-"`
}

// check refuses malformed input, and returns the address for Service.Allow to check.
func (in *CreateInput) check() (*url.URL, error) {
	var input check.Input
	input.Slug("input.name", in.Name)
	at, should := address(in.Kind, in.Location)
	if at == nil {
		input.Bad("input.location", "%s", should)
	}
	switch {
	case in.Kind != lifecycle.SourceS3 && in.Region != "":
		input.Bad("input.region", "may be set only for object stores")
	case in.Kind == lifecycle.SourceS3 && in.Region == "":
		in.Region = standardRegion
	case in.Kind == lifecycle.SourceS3 && !regionForm.MatchString(in.Region):
		input.Bad("input.region", "must have 1 to 40 lower-case letters, digits and hyphens")
	}
	checkPolicy(&input, in.SignaturePolicy)
	return at, input.Err()
}

// checkPolicy refuses an unknown signature policy.
func checkPolicy(input *check.Input, policy lifecycle.SignaturePolicy) {
	known := []lifecycle.SignaturePolicy{lifecycle.SignatureRequired, lifecycle.SignatureQuarantine,
		lifecycle.SignatureOptional}
	if !slices.Contains(known, policy) {
		input.Bad("input.signaturePolicy", "must be one of REQUIRED, QUARANTINE and OPTIONAL")
	}
}

// Create adds a source, without a credential and without keys. A repeat with the same key returns the same source. Key:
// source.manage on the tenant, or on the platform.
//
// Faults: INVALID_ARGUMENT naming the field, DIAL_REFUSED when the location names an IP that the operator does not
// allow, NOT_FOUND, FORBIDDEN, POLICY_DENIED when artifactSources does not let the location through, CONFLICT at
// input.name or input.location, LIMIT_EXCEEDED beyond 200 sources of one owner, IDEMPOTENCY_KEY_REUSED.
func (s *Service) Create(ctx context.Context, in CreateInput) (out *db.ArtifactSource, err error) {
	at, err := in.check()
	if err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		out, err = s.create(ctx, t, in, at)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (s *Service) create(ctx context.Context, t *tx.Tx, in CreateInput, at *url.URL) (*db.ArtifactSource, error) {
	const action = "createArtifactSource"
	where := owner(in.TenantID)
	if in.TenantID != nil {
		_, err := t.Tenant.Get(ctx, *in.TenantID)
		if db.IsNotFound(err) {
			return nil, audit.Missing(t, action, authz.SourceManage, *in.TenantID)
		}
		if err != nil {
			return nil, fmt.Errorf("load tenant %s: %w", *in.TenantID, err)
		}
	}
	if err := audit.Require(t, action, authz.SourceManage, where, rows.Value(in.TenantID)); err != nil {
		return nil, err
	}
	made := ids.New(ids.ArtifactSource)
	repeated, err := idem.Claim(ctx, t, idem.Key{Verb: action, TenantID: where.TenantID, Value: in.IdempotencyKey,
		Input: in}, &made)
	if err != nil {
		return nil, err
	}
	if repeated {
		return one(ctx, t, rows.ArtifactSource, `SELECT `+rows.ArtifactSourceColumns+`
			FROM artifact_source WHERE id = $1`, made)
	}
	if s.Allow != nil {
		if err := s.Allow(at); err != nil {
			return nil, audit.Refused(t, action, authz.SourceManage, where, "", placed(err))
		}
	}
	if err := permitted(ctx, t, action, in.TenantID, "", in.Location, "input.location"); err != nil {
		return nil, err
	}
	if err := room(ctx, t, in.TenantID); err != nil {
		return nil, err
	}
	row, err := one(ctx, t, rows.ArtifactSource, `INSERT INTO artifact_source (id, tenant_id, name, kind, location,
		region, signature_policy, created_by, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) RETURNING `+rows.ArtifactSourceColumns,
		made, in.TenantID, in.Name, string(in.Kind), in.Location, in.Region, string(in.SignaturePolicy),
		string(t.Actor.ID), t.Now)
	if err != nil {
		return nil, taken(fmt.Errorf("create a source: %w", err), "input.location")
	}
	return row, audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.SourceManage, Object: where,
		ObjectID: row.ID, After: trail(row)})
}

// placed returns the refusal of an address at the field that named it.
func placed(err error) error {
	if refused, ok := fault.As(err); ok {
		return refused.At("input.location")
	}
	return err
}

// room locks an owner against the concurrent creation of sources, and refuses a source beyond maxSources.
func room(ctx context.Context, t *tx.Tx, tenantID *ids.ID) error {
	of := string(rows.Value(tenantID))
	if _, err := t.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('artifact sources of ' || $1, 0))`,
		of); err != nil {
		return fmt.Errorf("lock the sources of %q: %w", of, err)
	}
	var held int
	if err := t.QueryRow(ctx, `SELECT count(*) FROM artifact_source WHERE coalesce(tenant_id, '') = $1`,
		of).Scan(&held); err != nil {
		return fmt.Errorf("count the sources of %q: %w", of, err)
	}
	if held >= maxSources {
		return fault.New(fault.LimitExceeded, "there may be at most %d sources of one owner", maxSources).
			At("input.tenantId")
	}
	return nil
}
