package catalog

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/digest"
	"github.com/gpuaas/app-platform/domain/evidence"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/catalog/trust"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// maxReports bounds the reports of one manifest.
const maxReports = 50

// EvidenceInput is a report for a manifest.
type EvidenceInput struct {
	ManifestID ids.ID
	Kind       lifecycle.EvidenceKind
	// Report is the report's bytes, at most 512 KiB, and Digest what they are checked against.
	Report, Digest string
	// Signature is a registered runner's over evidence.Statement, base64; empty for an unsigned report.
	Signature string
}

// SubmitEvidence stores a report; repeating it changes nothing. Key: manifest.publish on the app's publisher, or on the
// platform. DIGEST_MISMATCH when the bytes are others than the digest says, or the report others than its own;
// INVALID_ARGUMENT naming the field, also when the report is of another adapter or app; LIMIT_EXCEEDED after 50.
func (s *Service) SubmitEvidence(ctx context.Context, in EvidenceInput) (out *db.PromotionEvidence, err error) {
	summary, err := in.read()
	if err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		out, err = submit(ctx, t, in, summary)
		return err
	})
	return out, err
}

// read checks the input against its digest and reads the report.
func (in EvidenceInput) read() (evidence.Summary, error) {
	var input check.Input
	if !digest.Valid(in.Digest) {
		input.Bad("input.digest", "must be sha256: and 64 hexadecimal digits")
	}
	if len(in.Report) > evidence.MaxReport {
		input.Bad("input.report", "must have at most %d bytes", evidence.MaxReport)
	}
	if err := input.Err(); err != nil {
		return evidence.Summary{}, err
	}
	if own := digest.Of([]byte(in.Report)); own != in.Digest {
		return evidence.Summary{}, fault.New(fault.DigestMismatch, "the report has digest %s", own).At("input.digest")
	}
	return evidence.Parse(in.Kind, []byte(in.Report))
}

// ofManifest returns why a report is not of this adapter and app; empty when it is. An adapter that runs any app is
// tested with any.
func ofManifest(said evidence.Summary, adapterName, app string) string {
	switch {
	case said.Adapter != adapterName:
		return fmt.Sprintf("the report is of adapter %q, and the manifest names %q", said.Adapter, adapterName)
	case said.App != app && said.App != adapter.AnyApp:
		return fmt.Sprintf("the report is of app %q, and the manifest is of %q", said.App, app)
	}
	return ""
}

func submit(ctx context.Context, t *tx.Tx, in EvidenceInput, summary evidence.Summary) (*db.PromotionEvidence, error) {
	locked, err := attempt{"submitEvidence", authz.ManifestPublish, "input.manifestId"}.lock(ctx, t, in.ManifestID)
	if err != nil {
		return nil, err
	}
	if wrong := ofManifest(summary, locked.row.AdapterName, locked.row.AppSlug); wrong != "" {
		return nil, fault.New(fault.InvalidArgument, "%s", wrong).At("input.report")
	}
	runner, err := trust.SignedBy(ctx, t, in.Kind, in.Digest, in.Signature)
	if err != nil {
		return nil, err
	}
	before, count, err := reportsSoFar(ctx, t, in, runner)
	if err != nil || before != nil {
		return before, err
	}
	if count >= maxReports {
		return nil, fault.New(fault.LimitExceeded, "a manifest may have at most %d reports", maxReports).
			At("input.manifestId")
	}
	encoded, err := json.Marshal(summary)
	if err != nil {
		return nil, fmt.Errorf("encode the summary: %w", err)
	}
	made := t.PromotionEvidence.Create().SetID(ids.New(ids.Evidence)).SetManifestID(in.ManifestID).SetKind(in.Kind).
		SetDigest(in.Digest).
		SetReport([]byte(in.Report)).SetSummary(encoded).SetPassed(summary.OK()).SetSubmittedBy(string(t.Actor.ID)).
		SetRunnerID(string(runner)).SetCreatedAt(t.Now)
	if locked.tenant != nil {
		made.SetTenantID(*locked.tenant)
	}
	row, err := made.Save(ctx)
	if err != nil {
		return nil, fmt.Errorf("store the report: %w", err)
	}
	return row, audit.Write(ctx, t, audit.Entry{Action: "submitEvidence", Key: authz.ManifestPublish,
		Object: locked.object(), ObjectID: in.ManifestID,
		After: map[string]any{"id": row.ID, "kind": in.Kind, "digest": in.Digest, "passed": row.Passed,
			"runner": runner, "summary": summary}})
}

// reportsSoFar is the same report if it was brought before, and how many the manifest has. The manifest is locked.
func reportsSoFar(ctx context.Context, t *tx.Tx, in EvidenceInput, runner ids.ID) (same *db.PromotionEvidence,
	count int, err error) {
	if err := t.QueryRow(ctx, `SELECT count(*) FROM promotion_evidence
		WHERE manifest_id = $1`, in.ManifestID).Scan(&count); err != nil {
		return nil, 0, fmt.Errorf("count the reports: %w", err)
	}
	reports, err := tx.Collect(ctx, t, rows.PromotionEvidence, `SELECT `+rows.PromotionEvidenceColumns+`
		FROM promotion_evidence WHERE manifest_id = $1 AND kind = $2 AND digest = $3 AND runner_id = $4`,
		in.ManifestID, in.Kind, in.Digest, runner)
	if err != nil {
		return nil, 0, fmt.Errorf("find the report: %w", err)
	}
	if len(reports) > 0 {
		same = reports[0]
	}
	return same, count, nil
}
