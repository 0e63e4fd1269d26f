package canary

import (
	"context"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/rollout"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/rows"
)

// maxPoints bounds the chart.
const maxPoints = 500

// Report returns how the canary goes, or went: its launches since it began, over all tenants, beside those of the
// version that is active, or was when it ended. Key: manifest.read on the app's publisher, or on the platform.
// NOT_FOUND when the manifest does not exist; FAILED_PRECONDITION when it never was a canary.
func (s *Service) Report(ctx context.Context, manifestID ids.ID) (*Report, error) {
	var row, beside *db.Manifest
	var app *db.App
	var launches []launch
	actor, err := s.DB.Read(ctx,
		tx.Row(&row, rows.Manifest, `SELECT `+rows.ManifestColumns+` FROM manifest WHERE id = $1`, manifestID),
		tx.Row(&beside, rows.Manifest, `SELECT `+rows.ManifestColumns+` FROM manifest
			WHERE id = (SELECT platform.canary_beside(m) FROM manifest m WHERE m.id = $1)`, manifestID),
		tx.Row(&app, rows.App, `SELECT `+rows.AppColumns+` FROM app
			WHERE id = (SELECT app_id FROM manifest WHERE id = $1)`,
			manifestID),
		tx.Rows(&launches, scanLaunch, launchesSQL, manifestID, mostLaunches, true))
	if err != nil {
		return nil, err
	}
	if row == nil || app == nil {
		if err := authz.RequireAnywhere(actor, authz.ManifestRead); err != nil {
			return nil, err
		}
		return nil, fault.NoSuch()
	}
	if err := authz.RequireOn(actor, authz.ManifestRead, publisher(app)); err != nil {
		return nil, err
	}
	if row.CanaryStartedAt == nil {
		return nil, fault.New(fault.FailedPrecondition, "version %s has never been a canary",
			row.Version).At("manifestId")
	}
	return report(row, beside, launches), nil
}

// publisher is what the permission hangs on: the project that publishes the app, or the platform.
func publisher(app *db.App) (object authz.Object) {
	if app.PublisherTenantID != nil {
		object.TenantID = *app.PublisherTenantID
	}
	if app.PublisherProjectID != nil {
		object.ProjectID = *app.PublisherProjectID
	}
	return object
}

func report(row, beside *db.Manifest, launches []launch) *Report {
	out := &Report{
		Percent: row.CanaryPercent, StartedAt: row.CanaryStartedAt, HaltedAt: row.CanaryHaltedAt,
		HaltReason: row.CanaryHaltReason,
		Canary:     tally(launches, true), Threshold: rollout.Threshold,
	}
	out.Canary.Manifest = row
	if beside != nil {
		out.Active = tally(launches, false)
		out.Active.Manifest = beside
	}
	var point Point
	test := judge(launches, beside != nil, func(one launch, outcome rollout.Outcome, test *rollout.Test) {
		point.count(outcome)
		point.At, point.Evidence = *one.ended, test.Evidence()
		next := point
		out.Points = append(out.Points, &next)
	})
	out.Points = out.Points[max(0, len(out.Points)-maxPoints):]
	out.Verdict = test.Verdict()
	return out
}

func (p *Point) count(o rollout.Outcome) {
	launches, failed := &p.ActiveLaunches, &p.ActiveFailed
	if o.Canary {
		launches, failed = &p.CanaryLaunches, &p.CanaryFailed
	}
	*launches++
	if o.Failed {
		*failed++
	}
}
