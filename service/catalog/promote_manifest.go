package catalog

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// defaultCanaryPercent is the percentage of the projects that a canary takes in when none is given.
const defaultCanaryPercent = 10

// PromoteManifestInput is a step of trust.
type PromoteManifestInput struct {
	ManifestID ids.ID
	To         lifecycle.Stage
	Reason     string
	// SmokeInstanceID proves the step to STAGED; otherwise it is ignored.
	SmokeInstanceID *ids.ID
	// CanaryPercent is how many of the projects a step to CANARY takes in, 1 to 100; nil for 10.
	CanaryPercent *int
	// Override is why the step's terms are set aside; empty to hold it to them. Only the platform's staff may.
	Override string
}

func (in PromoteManifestInput) check() error {
	var input check.Input
	input.Text("input.reason", in.Reason, 1, check.MaxReason)
	input.Text("input.override", in.Override, 0, check.MaxReason)
	if in.CanaryPercent != nil && (*in.CanaryPercent < 1 || *in.CanaryPercent > 100) {
		input.Bad("input.canaryPercent", "must be 1 to 100")
	}
	return input.Err()
}

// PromoteManifest moves a manifest to its next stage. Key: manifest.promote on the app's publisher, or on the platform.
//
// STAGED needs the document to lint still, to stay within what its adapter describes, and a smoke instance of it that
// ran and was torn down with proof; a controller needs passed reports of its adapter's build as well, and declared
// behaviour (EVIDENCE_MISSING). STAGED, CANARY and ACTIVE take no artifact in quarantine (ARTIFACT_QUARANTINED). An app
// has one canary at a time (CONFLICT naming it). ACTIVE needs every pinned artifact active and a canary that was not
// halted, and deprecates the version that was active before. RETIRED waits for the last live instance. CANARY needs a
// controller's reports signed by registered runners, ACTIVE the app's least number of launches and least time as the
// canary, RETIRED its grace period (EVIDENCE_MISSING); override sets that aside, by manifest.promote on the platform.
// FAILED_PRECONDITION for any other step names both stages; CONFLICT when another promotion came first.
func (s *Service) PromoteManifest(ctx context.Context, in PromoteManifestInput) (out *db.Manifest, err error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		out, err = promote(ctx, t, in)
		return err
	})
	return out, err
}

func promote(ctx context.Context, t *tx.Tx, in PromoteManifestInput) (*db.Manifest, error) {
	locked, err := attempt{"promoteManifest", authz.ManifestPromote, "input.manifestId"}.lock(ctx, t, in.ManifestID)
	if err != nil {
		return nil, err
	}
	if err := locked.row.Stage.CanMove(in.To); err != nil {
		return nil, fault.From(err).At("input.to")
	}
	if err := sound(ctx, t, locked.row, in.To); err != nil {
		return nil, err
	}
	if err := terms(ctx, t, locked, in); err != nil {
		return nil, err
	}
	update := locked.row.Update().SetStage(in.To)
	switch in.To {
	case lifecycle.StageStaged:
		err = toStaged(ctx, t, update, locked, in)
	case lifecycle.StageCanary:
		err = toCanary(t, update, locked, in)
	case lifecycle.StageActive:
		err = toActive(ctx, t, update, locked, in)
	case lifecycle.StageRetired:
		err = unused(ctx, t, locked.row)
	}
	if err != nil {
		return nil, err
	}
	moved, err := update.Save(ctx)
	if err != nil {
		return nil, fmt.Errorf("promote manifest %s: %w", locked.row.ID, err)
	}
	return moved, locked.keep(ctx, t, locked.row, moved, why{in.Reason, in.Override})
}

// toStaged takes a draft by its evidence, and a canary back, which ends it.
func toStaged(ctx context.Context, t *tx.Tx, update *db.ManifestUpdateOne, v *versions, in PromoteManifestInput) error {
	if v.row.Stage == lifecycle.StageCanary {
		update.SetCanaryPercent(0)
		return nil
	}
	found, err := prove(ctx, t, v.row, in.SmokeInstanceID)
	if err != nil {
		return err
	}
	update.SetEvidence(found)
	return nil
}

// toCanary begins a canary from zero: the result of an earlier one does not count.
func toCanary(t *tx.Tx, update *db.ManifestUpdateOne, v *versions, in PromoteManifestInput) error {
	if v.canary != nil {
		return fault.New(fault.Conflict, "version %s (%s) is the app's canary: an app has one at a time",
			v.canary.Version, v.canary.ID).
			At("input.to").Retry(false)
	}
	percent := defaultCanaryPercent
	if v.row.Sandbox {
		percent = 100 // of its one project
	}
	if in.CanaryPercent != nil {
		percent = *in.CanaryPercent
	}
	update.SetCanaryPercent(percent).SetCanaryStartedAt(t.Now).ClearCanaryHaltedAt().SetCanaryHaltReason("")
	return nil
}

// toActive ends the canary and deprecates what was active. A canary that was halted goes back first.
func toActive(ctx context.Context, t *tx.Tx, update *db.ManifestUpdateOne, v *versions, in PromoteManifestInput) error {
	if v.row.CanaryHaltedAt != nil {
		return haltedCanary(v.row)
	}
	update.SetCanaryPercent(0)
	return v.supersede(ctx, t, in.Reason)
}

// haltedCanary is why a canary that was halted does not become active.
func haltedCanary(row *db.Manifest) *fault.Fault {
	return fault.New(fault.FailedPrecondition, "the canary was halted (%s): take it back to STAGED first",
		row.CanaryHaltReason).At("input.to")
}

// supersede deprecates the version that was active before the next one becomes active: an app has one at a time.
func (v *versions) supersede(ctx context.Context, t *tx.Tx, reason string) error {
	if v.active == nil {
		return nil
	}
	moved, err := v.active.Update().SetStage(lifecycle.StageDeprecated).Save(ctx)
	if err != nil {
		return fmt.Errorf("deprecate manifest %s: %w", v.active.ID, err)
	}
	return v.keep(ctx, t, v.active, moved, why{reason: fmt.Sprintf("superseded by version %s: %s",
		v.row.Version, reason)})
}

// keep writes a step into the manifest's history and into the audit.
func (p publisher) keep(ctx context.Context, t *tx.Tx, before, after *db.Manifest, why why) error {
	var percent *int
	if after.Stage == lifecycle.StageCanary {
		percent = &after.CanaryPercent
	}
	actor := t.Actor.Ref()
	_, err := t.Exec(ctx, `INSERT INTO promotion (id, object_id, from_stage, to_stage, canary_percent, reason,
		actor_kind, actor_id, actor_name, created_at, override)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10,
		$11)`, ids.New(ids.Promotion), after.ID, before.Stage, after.Stage, percent, why.reason, actor.Kind, actor.ID,
		actor.Name, t.Now, why.override)
	if err != nil {
		return fmt.Errorf("store the step of manifest %s: %w", after.ID, err)
	}
	action := "promoteManifest"
	if before.Stage == after.Stage {
		action = "setCanaryPercent"
	}
	return audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.ManifestPromote, Object: p.object(),
		ObjectID: after.ID, Reason: why.reason,
		Before: map[string]any{"stage": before.Stage, "canaryPercent": before.CanaryPercent},
		After: map[string]any{"stage": after.Stage, "canaryPercent": after.CanaryPercent, "app": after.AppSlug,
			"version": after.Version,
			"digest":  after.Digest, "override": why.override, "evidence": document(after.Evidence)}})
}

// document returns stored JSON for the audit; nil when it is empty.
func document(stored json.RawMessage) any {
	if len(stored) == 0 {
		return nil
	}
	return stored
}
