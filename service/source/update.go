package source

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// UpdateInput is what changes of a source; nil stays.
type UpdateInput struct {
	SourceID        ids.ID
	Name            *string
	SignaturePolicy *lifecycle.SignaturePolicy
	Disabled        *bool
	Reason          string
}

func (in UpdateInput) check() error {
	var input check.Input
	if in.Name != nil {
		input.Slug("input.name", *in.Name)
	}
	if in.SignaturePolicy != nil {
		checkPolicy(&input, *in.SignaturePolicy)
	}
	if in.Name == nil && in.SignaturePolicy == nil && in.Disabled == nil {
		input.Bad("input", "must set at least one field to change")
	}
	input.Reason("input.reason", in.Reason)
	return input.Err()
}

// Update changes a source, or switches it off or on. A new signature policy does not check again what is published:
// it holds for what is published or promoted from now on. Key: source.manage on its tenant, or on the platform.
//
// Faults: INVALID_ARGUMENT naming the field, NOT_FOUND, FORBIDDEN, CONFLICT at input.name, or at input.disabled when it
// is switched on and another has its location by now, and there POLICY_DENIED when artifactSources does not allow
// it.
func (s *Service) Update(ctx context.Context, in UpdateInput) (out *db.ArtifactSource, err error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		out, err = update(ctx, t, in)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func update(ctx context.Context, t *tx.Tx, in UpdateInput) (*db.ArtifactSource, error) {
	const action = "updateArtifactSource"
	before, err := locked(ctx, t, action, in.SourceID)
	if err != nil {
		return nil, err
	}
	next := *before
	if in.Name != nil {
		next.Name = *in.Name
	}
	if in.SignaturePolicy != nil {
		next.SignaturePolicy = *in.SignaturePolicy
	}
	switch {
	case in.Disabled == nil || *in.Disabled == (before.DisabledAt != nil):
	case *in.Disabled:
		next.DisabledAt = &t.Now
	default:
		next.DisabledAt = nil
		if err := permitted(ctx, t, action, before.TenantID, before.ID, before.Location, "input.disabled"); err != nil {
			return nil, err
		}
	}
	after, err := one(ctx, t, rows.ArtifactSource,
		`UPDATE artifact_source SET name = $2, signature_policy = $3, disabled_at = $4 WHERE id = $1
			RETURNING `+rows.ArtifactSourceColumns,
		next.ID, next.Name, string(next.SignaturePolicy), next.DisabledAt)
	if err != nil {
		return nil, taken(fmt.Errorf("update source %s: %w", next.ID, err), "input.disabled")
	}
	return after, audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.SourceManage,
		Object: owner(before.TenantID), ObjectID: before.ID,
		Before: trail(before), After: trail(after), Reason: in.Reason})
}
