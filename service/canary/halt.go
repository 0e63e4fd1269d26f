package canary

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/rollout"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbapp "github.com/gpuaas/app-platform/ent/generated/db/app"
	dbmanifest "github.com/gpuaas/app-platform/ent/generated/db/manifest"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// Halted is what a canary was halted for.
type Halted struct {
	AppSlug, Version, Reason string
}

// platform is who halts canaries.
var platform = authz.System("platform")

// Halt halts a canary whose launches fail clearly more often than those of the active version: no project is taken in
// from then on, and those that have it keep it. It returns nil, and changes nothing, while the numbers do not show
// that, when the canary was halted before, and when the manifest is not a canary. It is for the workers and needs no
// key; the step is in the manifest's history and in the audit, by the platform.
func (s *Service) Halt(ctx context.Context, manifestID ids.ID) (out *Halted, err error) {
	worse, err := s.looksWorse(ctx, manifestID)
	if err != nil || !worse {
		return nil, err
	}
	err = s.DB.As(ctx, platform, func(ctx context.Context, t *tx.Tx) error {
		out, err = halt(ctx, t, manifestID)
		return err
	})
	return out, err
}

// looksWorse judges without a lock; halt judges again under one.
func (s *Service) looksWorse(ctx context.Context, manifestID ids.ID) (bool, error) {
	var beside *ids.ID
	err := s.DB.Worker().QueryRow(ctx, `SELECT platform.canary_beside(m) FROM manifest m
		WHERE id = $1 AND stage = 'CANARY' AND canary_started_at IS NOT NULL
		AND canary_halted_at IS NULL`, manifestID).Scan(&beside)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read canary %s: %w", manifestID, err)
	}
	launches, err := collect(ctx, s.DB.Worker(), manifestID)
	if err != nil {
		return false, fmt.Errorf("read the launches of canary %s: %w", manifestID, err)
	}
	return judge(launches, beside != nil, func(launch, rollout.Outcome, *rollout.Test) {
	}).Verdict() == lifecycle.CanaryWorse, nil
}

// halt locks the app and then the version, as every step of promotion does, so that none comes between what is judged
// and what is written.
func halt(ctx context.Context, t *tx.Tx, manifestID ids.ID) (*Halted, error) {
	app, row, err := lock(ctx, t, manifestID)
	if err != nil {
		return nil, err
	}
	if row.Stage != lifecycle.StageCanary || row.CanaryStartedAt == nil || row.CanaryHaltedAt != nil {
		return nil, nil
	}
	beside, err := besideOf(ctx, t, row)
	if err != nil {
		return nil, err
	}
	launches, err := collect(ctx, t, manifestID)
	if err != nil {
		return nil, fmt.Errorf("read the launches of canary %s: %w", manifestID, err)
	}
	reason := ""
	judge(launches, beside != "", func(_ launch, _ rollout.Outcome, test *rollout.Test) {
		if reason == "" && test.Verdict() == lifecycle.CanaryWorse {
			reason = why(launches, beside, test)
		}
	})
	if reason == "" {
		return nil, nil
	}
	if err := row.Update().SetCanaryHaltedAt(t.Now).SetCanaryHaltReason(reason).Exec(ctx); err != nil {
		return nil, fmt.Errorf("halt canary %s: %w", manifestID, err)
	}
	return &Halted{AppSlug: row.AppSlug, Version: row.Version, Reason: reason}, record(ctx, t, app, row, reason)
}

func lock(ctx context.Context, t *tx.Tx, manifestID ids.ID) (*db.App, *db.Manifest, error) {
	var slug string
	err := t.QueryRow(ctx, `SELECT slug FROM app WHERE id = (SELECT app_id FROM manifest WHERE id = $1)
		FOR NO KEY UPDATE`,
		manifestID).Scan(&slug)
	if err != nil {
		return nil, nil, fmt.Errorf("lock the app of %s: %w", manifestID, err)
	}
	app, err := t.App.Query().Where(dbapp.Slug(slug)).Only(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("load app %s: %w", slug, err)
	}
	row, err := t.Manifest.Query().Where(dbmanifest.ID(manifestID)).ForUpdate().Only(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("lock manifest %s: %w", manifestID, err)
	}
	return app, row, nil
}

// besideOf returns the version of the active manifest; empty when no manifest is active.
func besideOf(ctx context.Context, t *tx.Tx, row *db.Manifest) (version string, err error) {
	err = t.QueryRow(ctx, `SELECT b.version FROM manifest b WHERE b.id = (SELECT platform.canary_beside(m)
		FROM manifest m
		WHERE m.id = $1)`, row.ID).
		Scan(&version)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return "", fmt.Errorf("find the version that canary %s is compared with: %w", row.ID, err)
	}
	return version, nil
}

// why says what the canary is halted for.
func why(launches []launch, beside string, test *rollout.Test) string {
	canary, active := tally(launches, true), tally(launches, false)
	text := fmt.Sprintf("%d of %d launches failed", canary.Failed, canary.Launches)
	if active.Launches > 0 {
		text += fmt.Sprintf(", and %d of %d of version %s", active.Failed, active.Launches, beside)
	} else {
		text += fmt.Sprintf(", and there is no launch of an active version to compare with; %.0f percent may fail",
			100*rollout.Tolerance)
	}
	return fmt.Sprintf("%s: the evidence that it is worse reached %.0f of %.0f", text, test.Evidence(),
		rollout.Threshold)
}

// record writes the step into the manifest's history and the audit.
func record(ctx context.Context, t *tx.Tx, app *db.App, row *db.Manifest, reason string) error {
	err := t.Promotion.Create().SetID(ids.New(ids.Promotion)).SetObjectID(row.ID).SetFromStage(lifecycle.StageCanary).
		SetToStage(lifecycle.StageCanary).
		SetCanaryPercent(row.CanaryPercent).SetReason(reason).SetActorKind(string(t.Actor.Kind)).
		SetActorID(string(t.Actor.ID)).SetActorName(t.Actor.Name).
		SetCreatedAt(t.Now).Exec(ctx)
	if err != nil {
		return fmt.Errorf("note the halt of canary %s: %w", row.ID, err)
	}
	return audit.Write(ctx, t, audit.Entry{Action: "haltCanary", Key: authz.ManifestPromote, Object: publisher(app),
		ObjectID: row.ID, Reason: reason,
		Before: map[string]any{"stage": row.Stage, "canaryPercent": row.CanaryPercent, "halted": false},
		After: map[string]any{"stage": row.Stage, "canaryPercent": row.CanaryPercent, "halted": true,
			"app": row.AppSlug, "version": row.Version}})
}
