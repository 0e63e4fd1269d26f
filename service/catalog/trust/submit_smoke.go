package trust

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/digest"
	"github.com/gpuaas/app-platform/domain/evidence"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbartifact "github.com/gpuaas/app-platform/ent/generated/db/artifact"
	dbsmoke "github.com/gpuaas/app-platform/ent/generated/db/artifactsmoke"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// maxSmokes bounds the reports of one artifact.
const maxSmokes = 50

// SmokeInput is the signed report of a smoke of an artifact's kind.
type SmokeInput struct {
	ArtifactID ids.ID
	// Report is the report's bytes, at most 64 KiB, and Digest what they are checked against.
	Report, Digest string
	// Signature is a registered runner's over evidence.Statement of kind SMOKE, base64.
	Signature string
}

// read checks the input against its digest and reads the report.
func (in SmokeInput) read() (*evidence.SmokeReport, error) {
	var input check.Input
	if !digest.Valid(in.Digest) {
		input.Bad("input.digest", "must be sha256: and 64 hexadecimal digits")
	}
	if len(in.Report) > evidence.MaxSmoke {
		input.Bad("input.report", "must have at most %d bytes", evidence.MaxSmoke)
	}
	if in.Signature == "" {
		input.Bad("input.signature",
			"must be a registered runner's signature: a smoke that no runner signed does not count")
	}
	if err := input.Err(); err != nil {
		return nil, err
	}
	if own := digest.Of([]byte(in.Report)); own != in.Digest {
		return nil, fault.New(fault.DigestMismatch, "the report has digest %s", own).At("input.digest")
	}
	return evidence.ParseSmoke([]byte(in.Report))
}

// SubmitSmoke stores the signed report of a smoke of the artifact's kind; the same one again changes nothing. Key:
// artifact.publish on its project or tenant, or on the platform. DIGEST_MISMATCH when the bytes are others than the
// digest says; SIGNATURE_UNTRUSTED when the signature is not a registered runner's; INVALID_ARGUMENT naming the field,
// also when the report is of another artifact; LIMIT_EXCEEDED after 50.
func (s *Service) SubmitSmoke(ctx context.Context, in SmokeInput) (out *db.ArtifactSmoke, err error) {
	said, err := in.read()
	if err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		out, err = submitSmoke(ctx, t, in, said)
		return err
	})
	return out, err
}

func submitSmoke(ctx context.Context, t *tx.Tx, in SmokeInput, said *evidence.SmokeReport) (*db.ArtifactSmoke, error) {
	const action = "submitArtifactSmoke"
	row, err := smokedArtifact(ctx, t, action, in.ArtifactID)
	if err != nil {
		return nil, err
	}
	object := objectOf(row)
	if err := said.Of(row.Kind, row.Digest); err != nil {
		return nil, err
	}
	runner, err := SignedBy(ctx, t, evidence.Smoke, in.Digest, in.Signature)
	if err != nil {
		return nil, audit.Refused(t, action, authz.ArtifactPublish, object, row.ID, err)
	}
	before, err := t.ArtifactSmoke.Query().Where(dbsmoke.ArtifactID(row.ID)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("load the smokes of %s: %w", row.ID, err)
	}
	for _, one := range before {
		if one.Digest == in.Digest && one.RunnerID == string(runner) {
			return one, nil
		}
	}
	if len(before) >= maxSmokes {
		return nil, fault.New(fault.LimitExceeded, "an artifact may have at most %d reports",
			maxSmokes).At("input.artifactId")
	}
	encoded, err := json.Marshal(said)
	if err != nil {
		return nil, fmt.Errorf("encode the report: %w", err)
	}
	made, err := t.ArtifactSmoke.Create().SetID(ids.New(ids.ArtifactSmoke)).SetArtifactID(row.ID).
		SetNillableTenantID(row.TenantID).SetDigest(in.Digest).SetReport([]byte(in.Report)).SetSummary(encoded).
		SetPassed(len(said.Missing()) == 0).SetSubmittedBy(string(t.Actor.ID)).SetRunnerID(string(runner)).
		SetCreatedAt(t.Now).
		Save(ctx)
	if err != nil {
		return nil, fmt.Errorf("store the report: %w", err)
	}
	return made, audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.ArtifactPublish, Object: object,
		ObjectID: row.ID, After: map[string]any{"id": made.ID, "digest": in.Digest, "passed": made.Passed,
			"runner": runner, "missing": said.Missing()}})
}

// smokedArtifact locks the artifact, authorised. What the caller may only see is not locked: row-level security would
// hide it.
func smokedArtifact(ctx context.Context, t *tx.Tx, action string, id ids.ID) (*db.Artifact, error) {
	query := t.Artifact.Query().Where(dbartifact.ID(id))
	row, err := query.Clone().Only(ctx)
	if err == nil {
		if err := audit.Require(t, action, authz.ArtifactPublish, objectOf(row), id); err != nil {
			return nil, err
		}
		row, err = query.ForUpdate().Only(ctx)
	}
	if db.IsNotFound(err) {
		return nil, audit.Missing(t, action, authz.ArtifactPublish, id)
	}
	if err != nil {
		return nil, fmt.Errorf("load artifact %s: %w", id, err)
	}
	return row, nil
}

// objectOf is whose the artifact is.
func objectOf(row *db.Artifact) authz.Object {
	return authz.Object{TenantID: rows.Value(row.TenantID), ProjectID: rows.Value(row.ProjectID)}
}
