package artifact

import (
	"context"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// Quarantine puts an artifact in quarantine, where it stays until a person releases it: no check does. A check's
// quarantine becomes a person's; one that is a person's is returned as it is. Key: artifact.quarantine on its tenant,
// or on the platform. Faults: INVALID_ARGUMENT at reason, NOT_FOUND, FORBIDDEN.
func (s *Service) Quarantine(ctx context.Context, id ids.ID, reason string) (*db.Artifact, error) {
	return s.seclude(ctx, "quarantineArtifact", id, reason,
		func(ctx context.Context, t *tx.Tx, row *db.Artifact) (*db.Artifact, map[string]any, error) {
			if row.QuarantinedAt != nil && row.QuarantineCode == "" {
				return row, nil, nil
			}
			out, err := row.Update().SetQuarantinedAt(t.Now).SetQuarantineCode("").SetQuarantineReason(reason).Save(ctx)
			if err != nil {
				return nil, nil, err
			}
			return out, trail(out), nil
		})
}

// Release lets an artifact out of quarantine, whatever put it there; the audit says when no trusted key has signed it,
// or its bytes were found to be others. A check that finds the same signatures wrong leaves it outside. Key:
// artifact.quarantine on its tenant, or on the platform. Faults: INVALID_ARGUMENT at reason, NOT_FOUND, FORBIDDEN,
// FAILED_PRECONDITION at artifactId when it is in none.
func (s *Service) Release(ctx context.Context, id ids.ID, reason string) (*db.Artifact, error) {
	return s.seclude(ctx, "releaseArtifact", id, reason,
		func(ctx context.Context, t *tx.Tx, row *db.Artifact) (*db.Artifact, map[string]any, error) {
			if row.QuarantinedAt == nil {
				return nil, nil, fault.New(fault.FailedPrecondition, "the artifact is not in quarantine").
					At("artifactId")
			}
			noted, err := evidenceOf(row)
			if err != nil {
				return nil, nil, err
			}
			if code := waived(row); code != "" {
				noted.Released = &released{Code: code, At: t.Now, By: string(t.Actor.ID)}
			}
			encoded, err := noted.encode()
			if err != nil {
				return nil, nil, err
			}
			out, err := row.Update().ClearQuarantinedAt().SetQuarantineCode("").SetQuarantineReason("").
				SetEvidence(encoded).Save(ctx)
			if err != nil {
				return nil, nil, err
			}
			after := trail(out)
			after["untrusted"], after["altered"] = row.Signature != lifecycle.SignatureVerified, noted.Altered != ""
			return out, after, nil
		})
}

// seclude is what the two verbs have in common; change returns what the audit keeps, nil when nothing was changed.
func (s *Service) seclude(ctx context.Context, action string, id ids.ID, reason string,
	change func(context.Context, *tx.Tx, *db.Artifact) (*db.Artifact, map[string]any, error)) (out *db.Artifact,
	err error) {
	var input check.Input
	input.Text("reason", reason, 1, check.MaxReason)
	if err := input.Err(); err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		row, err := load(ctx, t, action, authz.ArtifactQuarantine, id)
		if err != nil {
			return err
		}
		before := trail(row)
		changed, after, err := change(ctx, t, row)
		if err != nil {
			return audit.Refused(t, action, authz.ArtifactQuarantine, objectOf(row), id, err)
		}
		out = changed
		if after == nil {
			return nil
		}
		return audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.ArtifactQuarantine, Object: objectOf(row),
			ObjectID: id, Reason: reason, Before: before, After: after})
	})
	return out, err
}

// waived is what a release lets pass: what the check that put the artifact in quarantine found, or what is known of its
// signatures when a person did.
func waived(row *db.Artifact) fault.Code {
	switch {
	case row.QuarantineCode != "":
		return fault.Code(row.QuarantineCode)
	case row.Signature == lifecycle.SignatureMissing:
		return fault.SignatureMissing
	case row.Signature == lifecycle.SignatureUntrusted:
		return fault.SignatureUntrusted
	}
	return ""
}
