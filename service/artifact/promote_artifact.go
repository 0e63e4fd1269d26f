package artifact

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	reports "github.com/gpuaas/app-platform/domain/evidence"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// maxNamed bounds the objects that a refusal names.
const maxNamed = 10

const promoting = "promoteArtifact"

// PromoteArtifactInput is a step of trust.
type PromoteArtifactInput struct {
	ArtifactID ids.ID
	To         lifecycle.Stage
	Reason     string
	// Override is why a platform's artifact goes to ACTIVE without a smoke of its kind; empty to need one.
	Override string
}

// PromoteArtifact moves an artifact to its next stage. Key: artifact.promote on its project or tenant, or on the
// platform.
//
// From DRAFT to STAGED all its bytes and signatures are read again, before and outside of the transaction. No step up
// is taken in quarantine, nor when the key that signed it has ended, was revoked, or its source requires more than it
// has; steps down always may. An artifact that an active manifest pins stays active, and one that a live instance uses
// is not retired: those that the caller does not see are counted, and not named. A platform's artifact, which every
// tenant may pin, is ACTIVE only after a smoke of its kind that a registered runner has signed (EVIDENCE_MISSING at
// input.to); override sets that aside, by artifact.promote on the platform. A tenant's reaches others with the version
// that pins it, whose step to CANARY needs the same.
//
// Faults: INVALID_ARGUMENT, NOT_FOUND, FORBIDDEN; EVIDENCE_MISSING; FAILED_PRECONDITION at input.to, naming both stages
// or who uses it; ARTIFACT_QUARANTINED, SIGNATURE_MISSING, SIGNATURE_UNTRUSTED, DIGEST_MISMATCH, SOURCE_UNKNOWN,
// DIAL_REFUSED and ARTIFACT_UNAVAILABLE at input.artifactId; CONFLICT when another promotion came first; UNAVAILABLE as
// of PublishArtifact.
func (s *Service) PromoteArtifact(ctx context.Context, in PromoteArtifactInput) (out *db.Artifact, err error) {
	var input check.Input
	input.Text("input.reason", in.Reason, 1, check.MaxReason)
	input.Text("input.override", in.Override, 0, check.MaxReason)
	if err := input.Err(); err != nil {
		return nil, err
	}
	var seen *db.Artifact
	var found *found
	if in.To == lifecycle.StageStaged {
		row, from, err := s.look(ctx, promoting, authz.ArtifactPromote, in.ArtifactID, in.may)
		if err != nil {
			return nil, at(err, "input.artifactId")
		}
		seen = row
		if row.Stage == lifecycle.StageDraft {
			if found, err = s.read(ctx, again(promoting, row, from)); err != nil {
				return nil, at(err, "input.artifactId")
			}
		}
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		out, err = s.promote(ctx, t, in, seen, found)
		return err
	})
	return out, err
}

// up reports whether a step raises how far the artifact is trusted.
func (in PromoteArtifactInput) up(from lifecycle.Stage) bool {
	return in.To == lifecycle.StageCanary || in.To == lifecycle.StageActive || in.To == lifecycle.StageStaged &&
		from == lifecycle.StageDraft
}

// may refuses a step that the table does not hold, and one up out of quarantine.
func (in PromoteArtifactInput) may(row *db.Artifact) error {
	if err := row.Stage.CanMove(in.To); err != nil {
		return fault.From(err).At("input.to")
	}
	if row.QuarantinedAt != nil && in.up(row.Stage) {
		text := row.QuarantineReason
		if row.QuarantineCode != "" {
			text = row.QuarantineCode + ": " + text
		}
		return fault.New(fault.ArtifactQuarantined, "the artifact is in quarantine: %s", text).At("input.artifactId")
	}
	return nil
}

func (s *Service) promote(ctx context.Context, t *tx.Tx, in PromoteArtifactInput, seen *db.Artifact,
	found *found) (*db.Artifact, error) {
	row, err := load(ctx, t, promoting, authz.ArtifactPromote, in.ArtifactID)
	if err != nil {
		return nil, err
	}
	if seen != nil && row.Stage != seen.Stage {
		return nil, fault.New(fault.Conflict,
			"the artifact's stage changed from %s to %s during this request: try again",
			seen.Stage, row.Stage).At("input.artifactId")
	}
	from := row.Stage
	if err := in.may(row); err != nil {
		return nil, audit.Refused(t, promoting, authz.ArtifactPromote, objectOf(row), row.ID, err)
	}
	if found != nil {
		if row, err = s.note(ctx, t, row, found); err != nil {
			return nil, err
		}
	}
	if err := in.rules(ctx, t, row, from); err != nil {
		return nil, audit.Refused(t, promoting, authz.ArtifactPromote, objectOf(row), row.ID, err)
	}
	moved, err := row.Update().SetStage(in.To).Save(ctx)
	if err != nil {
		return nil, fmt.Errorf("promote artifact %s: %w", row.ID, err)
	}
	step := t.Promotion.Create().SetID(ids.New(ids.Promotion)).SetObjectID(row.ID).SetNillableTenantID(row.TenantID).
		SetFromStage(from).SetToStage(in.To).
		SetReason(in.Reason).SetActorKind(string(t.Actor.Kind)).SetActorID(string(t.Actor.ID)).
		SetActorName(t.Actor.Name).SetCreatedAt(t.Now).
		SetOverride(in.Override)
	if err := step.Exec(ctx); err != nil {
		return nil, fmt.Errorf("note the promotion of %s: %w", row.ID, err)
	}
	before := trail(row)
	before["stage"] = from
	after := trail(moved)
	after["override"] = in.Override
	return moved, audit.Write(ctx, t, audit.Entry{Action: promoting, Key: authz.ArtifactPromote, Object: objectOf(row),
		ObjectID: row.ID, Reason: in.Reason,
		Before: before, After: after})
}

// rules are what a step requires beyond the table of stages.
func (in PromoteArtifactInput) rules(ctx context.Context, t *tx.Tx, row *db.Artifact, was lifecycle.Stage) error {
	switch {
	case in.up(was):
		from, err := sourceOf(ctx, t, row)
		if err != nil {
			return at(err, "input.artifactId")
		}
		if err := trusted(row, from, "input.artifactId"); err != nil {
			return err
		}
		return in.smoked(ctx, t, row)
	case in.To == lifecycle.StageDeprecated:
		return nobody(ctx, t, "an active manifest pins the artifact", `SELECT 'manifest ' || m.id || ' (' || m.app_slug
			|| ' ' || m.version || ')'
			FROM manifest m JOIN manifest_artifact p ON p.manifest_id = m.id WHERE p.artifact_id = $1 AND m.stage = 'ACTIVE'
			ORDER BY m.id LIMIT $2`, row.ID, "0")
	case in.To == lifecycle.StageRetired:
		return nobody(ctx, t, "live instances use the artifact", `SELECT 'instance ' || i.id || ' (' || i.name || ')'
			FROM instance i
			JOIN manifest_artifact p ON p.manifest_id = i.manifest_id WHERE p.artifact_id = $1 AND i.released_at IS NULL
			ORDER BY i.id LIMIT $2`, row.ID,
			`platform.live_users($1)`)
	}
	return nil
}

// smoked refuses the step of a platform's artifact to ACTIVE without a smoke of its kind, unless the platform's staff
// set that aside with a reason. An override by any other caller is FORBIDDEN, needed or not.
func (in PromoteArtifactInput) smoked(ctx context.Context, t *tx.Tx, row *db.Artifact) error {
	if in.Override != "" {
		return audit.Require(t, promoting, authz.ArtifactPromote, authz.Object{}, row.ID)
	}
	if row.TenantID != nil || in.To != lifecycle.StageActive {
		return nil
	}
	var smoked bool
	if err := t.QueryRow(ctx, `SELECT platform.smoked($1)`, row.ID).Scan(&smoked); err != nil {
		return fmt.Errorf("find smokes of artifact %s: %w", row.ID, err)
	}
	if smoked {
		return nil
	}
	return fault.New(fault.EvidenceMissing,
		"the newest smoke report of its kind (%s) that a registered runner signed has not passed, or "+
			"there is no such report: run appctl artifact smoke, or set this aside with input.override",
		strings.Join(reports.SmokeChecks(row.Kind), ", ")).At("input.to")
}

// nobody refuses with FAILED_PRECONDITION when the query finds users of the artifact, naming up to 10 that the caller
// sees. The SQL expression "of" counts them all.
func nobody(ctx context.Context, t *tx.Tx, text, query string, id ids.ID, of string) error {
	found, err := t.Query(ctx, query, id, maxNamed)
	if err != nil {
		return fmt.Errorf("find users of artifact %s: %w", id, err)
	}
	users, err := pgx.CollectRows(found, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("find users of artifact %s: %w", id, err)
	}
	var all int
	if err := t.QueryRow(ctx, `SELECT greatest(`+of+`, $2) FROM (SELECT $1::text) asked`, id,
		len(users)).Scan(&all); err != nil {
		return fmt.Errorf("count users of artifact %s: %w", id, err)
	}
	if all == 0 {
		return nil
	}
	refused := fault.New(fault.FailedPrecondition, "%s", text)
	for _, user := range users {
		refused = refused.With(fault.Reason{Code: fault.FailedPrecondition, Message: user, Path: "input.to"})
	}
	if more := all - len(users); more > 0 {
		refused = refused.With(fault.Reason{Code: fault.FailedPrecondition, Message: fmt.Sprintf("%d more", more),
			Path: "input.to"})
	}
	return refused
}
