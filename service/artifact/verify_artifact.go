package artifact

import (
	"context"
	"errors"
	"fmt"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbartifact "github.com/gpuaas/app-platform/ent/generated/db/artifact"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/origin"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// Verify checks an artifact again: all its bytes, and its signatures by the keys that are trusted now. A wrong one goes
// into quarantine; a good one leaves the quarantine that a check put it in, and stays in one that a person did. Key:
// artifact.publish on its project or tenant, or on the platform.
//
// Faults: NOT_FOUND, FORBIDDEN; SOURCE_UNKNOWN, DIAL_REFUSED, ARTIFACT_UNAVAILABLE at artifactId: then nothing is
// known, and nothing changes; UNAVAILABLE as of PublishArtifact.
func (s *Service) Verify(ctx context.Context, id ids.ID) (out *db.Artifact, err error) {
	const action = "verifyArtifact"
	seen, from, err := s.look(ctx, action, authz.ArtifactPublish, id, nil)
	if err != nil {
		return nil, at(err, "artifactId")
	}
	found, err := s.readAgain(ctx, again(action, seen, from))
	if err != nil {
		return nil, at(err, "artifactId")
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		row, err := load(ctx, t, action, authz.ArtifactPublish, id)
		if err != nil {
			return err
		}
		out, err = s.note(ctx, t, row, found)
		if err != nil {
			return err
		}
		return audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.ArtifactPublish, Object: objectOf(row),
			ObjectID: id, Before: trail(row), After: trail(out)})
	})
	return out, err
}

// again is the reading of an artifact that is there.
func again(action string, row *db.Artifact, from *origin.Source) wanted {
	object := objectOf(row)
	return wanted{verb: action, from: from, ref: row.Ref, digest: row.Digest, tenant: object.TenantID,
		project: object.ProjectID, again: row.ID}
}

// objectOf is whose the artifact is.
func objectOf(row *db.Artifact) (out authz.Object) {
	if row.TenantID != nil {
		out.TenantID = *row.TenantID
	}
	if row.ProjectID != nil {
		out.ProjectID = *row.ProjectID
	}
	return out
}

// look is the first transaction of a verb that reads an artifact again: it authorises, calls may, and finds the source.
func (s *Service) look(ctx context.Context, action string, key authz.Key, id ids.ID,
	may func(*db.Artifact) error) (row *db.Artifact, from *origin.Source, err error) {
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		if row, err = load(ctx, t, action, key, id); err != nil {
			return err
		}
		if may != nil {
			if err := may(row); err != nil {
				return err
			}
		}
		if from, err = sourceOf(ctx, t, row); err != nil {
			return err
		}
		return errGoOn // what it locked is let go
	})
	if errors.Is(err, errGoOn) {
		err = nil
	}
	return row, from, err
}

// load locks an artifact, authorised. What the caller may only see is not locked: row-level security would hide it.
func load(ctx context.Context, t *tx.Tx, action string, key authz.Key, id ids.ID) (*db.Artifact, error) {
	query := t.Artifact.Query().Where(dbartifact.ID(id))
	row, err := query.Clone().Only(ctx)
	if err == nil {
		if err := audit.Require(t, action, key, objectOf(row), id); err != nil {
			return nil, err
		}
		row, err = query.ForUpdate().Only(ctx)
	}
	if db.IsNotFound(err) {
		return nil, audit.Missing(t, action, key, id)
	}
	if err != nil {
		return nil, fmt.Errorf("load artifact %s: %w", id, err)
	}
	return row, nil
}

// sourceOf is the source of an artifact; of one from before there were sources, the one that covers it now.
func sourceOf(ctx context.Context, t *tx.Tx, row *db.Artifact) (*origin.Source, error) {
	if row.SourceID != nil {
		return origin.Load(ctx, t, *row.SourceID, row.TenantID, row.Ref)
	}
	return origin.Find(ctx, t, row.TenantID, row.Ref)
}

// note writes what a check found, and puts the artifact in or out of quarantine by it.
func (s *Service) note(ctx context.Context, t *tx.Tx, row *db.Artifact, found *found) (*db.Artifact, error) {
	from, err := sourceOf(ctx, t, row)
	if err != nil {
		return nil, at(err, "artifactId")
	}
	noted, err := evidenceOf(row)
	if err != nil {
		return nil, err
	}
	found.signature = still(found.signature, from)
	noted.takes(found, t.Now)
	update := row.Update().SetSourceID(from.ID)
	code, reason := fault.DigestMismatch, ""
	if found.altered != nil {
		reason = found.altered.Message
	} else {
		code = lacking(from.Policy, found.signature.State)
		reason = why(code, found.signature)
		update.SetSignature(found.signature.State).SetVerifiedAt(t.Now).SetSizeBytes(found.size()).SetKind(found.kind).
			SetPlatforms(found.platforms)
		if key := found.signature.Key; key != nil {
			update.SetSignerKeyID(key.ID)
		} else {
			update.ClearSignerKeyID()
		}
	}
	byPerson := row.QuarantinedAt != nil && row.QuarantineCode == ""
	switch {
	case byPerson:
	case code != "" && !noted.waives(code):
		if row.QuarantinedAt == nil {
			update.SetQuarantinedAt(t.Now)
		}
		update.SetQuarantineCode(string(code)).SetQuarantineReason(reason)
	default:
		update.ClearQuarantinedAt().SetQuarantineCode("").SetQuarantineReason("")
	}
	if code == "" {
		noted.Released = nil
	}
	return save(ctx, t, row, update, noted, found)
}

// save writes the update, and the parts of an artifact from before they were kept.
func save(ctx context.Context, t *tx.Tx, row *db.Artifact, update *db.ArtifactUpdateOne, noted evidence,
	found *found) (*db.Artifact, error) {
	encoded, err := noted.encode()
	if err != nil {
		return nil, err
	}
	out, err := update.SetEvidence(encoded).Save(ctx)
	if err != nil {
		return nil, fmt.Errorf("note what was found of %s: %w", row.ID, err)
	}
	if row.VerifiedAt != nil || found.content == nil {
		return out, nil
	}
	var kept bool
	if err := t.QueryRow(ctx, `SELECT EXISTS (SELECT FROM artifact_part WHERE artifact_id = $1)`,
		row.ID).Scan(&kept); err != nil {
		return nil, fmt.Errorf("find the parts of %s: %w", row.ID, err)
	}
	if kept {
		return out, nil
	}
	return out, storeParts(ctx, t, out, found.parts)
}

// waives reports whether a person has released the artifact from quarantine for this very finding. No one can waive
// bytes that do not match the digest.
func (e *evidence) waives(code fault.Code) bool {
	return e.Released != nil && e.Released.Code == code && code != fault.DigestMismatch
}

// trusted refuses an artifact whose signature is not good enough at this moment: its key does not count any more, or
// the source's policy requires more than it did.
func trusted(row *db.Artifact, from *origin.Source, path string) error {
	noted, err := evidenceOf(row)
	if err != nil {
		return err
	}
	if noted.Altered != "" {
		return fault.New(fault.DigestMismatch, "its content did not have its digest when it was last verified: %s",
			noted.Altered).At(path)
	}
	state, reasons := row.Signature, []string{}
	if noted.Signature != nil {
		reasons = append(reasons, noted.Signature.Reasons...)
	}
	if state == lifecycle.SignatureVerified && !counts(row.SignerKeyID, from) {
		state, reasons = lifecycle.SignatureUntrusted,
			[]string{"the key that signed it is not trusted any more: sign it again, and verify it"}
	}
	if code := lacking(from.Policy, state); code != "" && !noted.waives(code) {
		return untrusted(code, reasons, path)
	}
	return nil
}

func counts(key *ids.ID, from *origin.Source) bool {
	for _, one := range from.Keys {
		if key != nil && one.ID == *key {
			return true
		}
	}
	return false
}
