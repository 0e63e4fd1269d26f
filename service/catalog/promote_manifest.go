package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbmanifest "github.com/gpuaas/app-platform/ent/generated/db/manifest"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/audit"
	"github.com/gpuaas/app-platform/service/check"
)

// maxNamed bounds the objects that a refusal names.
const maxNamed = 10

// PromoteManifestInput is a step of trust.
type PromoteManifestInput struct {
	ManifestID ids.ID
	To         lifecycle.Stage
	Reason     string
	// SmokeInstanceID proves the step to STAGED; otherwise it is not looked at.
	SmokeInstanceID *ids.ID
	// CanaryPercent is how many of the projects a step to CANARY takes in, 1 to 100; nil for 10.
	CanaryPercent *int
}

// PromoteManifest moves a manifest to its next stage. Key: manifest.promote on the platform.
//
// STAGED needs the document to lint still, to stay within what its adapter describes, and a smoke
// instance of this very manifest that ran and was torn down with proof (EVIDENCE_MISSING). ACTIVE
// needs every pinned artifact to be active, and deprecates the version that was active before.
// RETIRED waits for the last live instance. FAILED_PRECONDITION names both stages when the step is
// none; CONFLICT when another promotion came first.
func (s *Service) PromoteManifest(ctx context.Context, in PromoteManifestInput) (out *db.Manifest, err error) {
	var input check.Input
	input.Text("input.reason", in.Reason, 1, check.MaxReason)
	if err := input.Err(); err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		out, err = promote(ctx, t, in)
		return err
	})
	return out, err
}

func promote(ctx context.Context, t *tx.Tx, in PromoteManifestInput) (*db.Manifest, error) {
	const action = "promoteManifest"
	if err := audit.Require(t, action, authz.ManifestPromote, authz.Object{}, in.ManifestID); err != nil {
		return nil, err
	}
	row, previous, err := lockVersions(ctx, t, in.ManifestID)
	if err != nil {
		return nil, err
	}
	if err := row.Stage.CanMove(in.To); err != nil {
		return nil, fault.From(err).At("input.to")
	}
	update := row.Update().SetStage(in.To)
	switch in.To {
	case lifecycle.StageStaged:
		if row.Stage == lifecycle.StageDraft {
			evidence, err := prove(ctx, t, row, in.SmokeInstanceID)
			if err != nil {
				return nil, err
			}
			update.SetEvidence(evidence)
		}
	case lifecycle.StageActive:
		if err := artifactsActive(ctx, t, row); err != nil {
			return nil, err
		}
		if err := supersede(ctx, t, previous, row, in.Reason); err != nil {
			return nil, err
		}
	case lifecycle.StageRetired:
		if err := unused(ctx, t, row); err != nil {
			return nil, err
		}
	}
	moved, err := update.Save(ctx)
	if err != nil {
		return nil, fmt.Errorf("promote manifest %s: %w", row.ID, err)
	}
	return moved, auditStep(ctx, t, row, moved, in.Reason)
}

// lockVersions locks the manifest and its app's active one, one app at a time, and refuses with
// CONFLICT when either was moved by another promotion while this one waited.
func lockVersions(ctx context.Context, t *tx.Tx, id ids.ID) (row, active *db.Manifest, err error) {
	var slug string
	var stage lifecycle.Stage
	var activeID *ids.ID
	err = t.QueryRow(ctx, `SELECT m.app_slug, m.stage, (SELECT a.id FROM manifest a WHERE a.app_slug = m.app_slug AND a.stage = 'ACTIVE')
		FROM manifest m WHERE m.id = $1`, id).Scan(&slug, &stage, &activeID)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil, audit.Missing(t, "promoteManifest", authz.ManifestPromote, id)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("load manifest %s: %w", id, err)
	}
	if _, err := t.Exec(ctx, `SELECT FROM app WHERE slug = $1 FOR NO KEY UPDATE`, slug); err != nil {
		return nil, nil, fmt.Errorf("lock app %s: %w", slug, err)
	}
	locked, err := t.Manifest.Query().Where(dbmanifest.AppSlug(slug), dbmanifest.Or(dbmanifest.ID(id), dbmanifest.StageEQ(lifecycle.StageActive))).
		Order(db.Asc(dbmanifest.FieldID)).ForUpdate().All(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("lock manifest %s: %w", id, err)
	}
	for _, m := range locked {
		if m.ID == id {
			row = m
		} else {
			active = m
		}
	}
	return row, active, raced(row, active, stage, activeID)
}

// raced compares what was locked with what was seen before the lock was waited for.
func raced(row, active *db.Manifest, stage lifecycle.Stage, activeID *ids.ID) error {
	if row.Stage != stage {
		return fault.New(fault.Conflict, "the version was %s when this began and is %s now", stage, row.Stage).At("input.manifestId")
	}
	if active != nil && (activeID == nil || *activeID != active.ID) {
		return fault.New(fault.Conflict, "version %s became ACTIVE while this was under way", active.Version).At("input.manifestId")
	}
	return nil
}

// supersede deprecates the version that was active: it must stand aside before the next one steps in.
func supersede(ctx context.Context, t *tx.Tx, previous, by *db.Manifest, reason string) error {
	if previous == nil {
		return nil
	}
	moved, err := previous.Update().SetStage(lifecycle.StageDeprecated).Save(ctx)
	if err != nil {
		return fmt.Errorf("deprecate manifest %s: %w", previous.ID, err)
	}
	return auditStep(ctx, t, previous, moved, fmt.Sprintf("superseded by version %s: %s", by.Version, reason))
}

func auditStep(ctx context.Context, t *tx.Tx, before, after *db.Manifest, reason string) error {
	return audit.Write(ctx, t, audit.Entry{Action: "promoteManifest", Key: authz.ManifestPromote, ObjectID: after.ID, Reason: reason,
		Before: map[string]any{"stage": before.Stage},
		After:  map[string]any{"stage": after.Stage, "app": after.AppSlug, "version": after.Version, "digest": after.Digest, "evidence": document(after.Evidence)}})
}

// document is stored JSON for the audit; nil when there is none.
func document(stored json.RawMessage) any {
	if len(stored) == 0 {
		return nil
	}
	return stored
}

// artifactsActive refuses a manifest that pins anything but active artifacts. They are locked
// against a step of their own until the commit.
func artifactsActive(ctx context.Context, t *tx.Tx, row *db.Manifest) error {
	found, err := t.Query(ctx, `SELECT a.name, a.digest, a.stage FROM artifact a JOIN manifest_artifact p ON p.artifact_id = a.id
		WHERE p.manifest_id = $1 ORDER BY a.id FOR SHARE OF a`, row.ID)
	if err != nil {
		return fmt.Errorf("load the artifacts of %s: %w", row.ID, err)
	}
	refused := fault.New(fault.FailedPrecondition, "an active version pins active artifacts only")
	var name, digest string
	var stage lifecycle.Stage
	wrong := false
	_, err = pgx.ForEachRow(found, []any{&name, &digest, &stage}, func() error {
		if stage != lifecycle.StageActive {
			wrong = true
			refused = refused.With(fault.Reason{Code: fault.FailedPrecondition, Message: fmt.Sprintf("artifact %s (%s) is %s", name, digest, stage), Path: "input.to"})
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("load the artifacts of %s: %w", row.ID, err)
	}
	if wrong {
		return refused
	}
	return nil
}

// unused refuses to retire what a live instance uses, naming up to 10 of them.
func unused(ctx context.Context, t *tx.Tx, row *db.Manifest) error {
	found, err := t.Query(ctx, `SELECT id || ' (' || name || ')' FROM instance WHERE manifest_id = $1 AND released_at IS NULL ORDER BY id LIMIT $2`, row.ID, maxNamed)
	if err != nil {
		return fmt.Errorf("look for instances of %s: %w", row.ID, err)
	}
	live, err := pgx.CollectRows(found, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("look for instances of %s: %w", row.ID, err)
	}
	if len(live) == 0 {
		return nil
	}
	refused := fault.New(fault.FailedPrecondition, "version %s is used by live instances", row.Version)
	for _, instance := range live {
		refused = refused.With(fault.Reason{Code: fault.FailedPrecondition, Message: "live: " + instance, Path: "input.to"})
	}
	return refused
}
