package gap

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/kit/idem"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// Bounds of a gap.
const (
	maxTitle, maxDescription   = 200, 4_000
	maxEvidence, maxOfEvidence = 20, 300
	// maxUndecided bounds the gaps of an app that have not ended.
	maxUndecided = 200
)

// RaiseInput is a gap that was found.
type RaiseInput struct {
	AppSlug, Version   string
	Kind               lifecycle.GapKind
	Title, Description string
	InstanceID         *ids.ID
	Evidence           []string
	IdempotencyKey     string
}

func (in *RaiseInput) check() error {
	var input check.Input
	input.Text("input.title", in.Title, 1, maxTitle)
	input.Text("input.description", in.Description, 1, maxDescription)
	if len(in.Evidence) > maxEvidence {
		input.Bad("input.evidence", "must have at most %d entries", maxEvidence)
	}
	for i, one := range in.Evidence {
		input.Text(fmt.Sprintf("input.evidence.%d", i), one, 1, maxOfEvidence)
	}
	return input.Err()
}

// made is what an idempotency key stores.
type made struct {
	ID ids.ID `json:"id"`
}

const raising = "raiseGap"

// Raise notes what the platform lacks for an app. Key: gap.raise on the app's publisher, or on the platform.
//
// Faults: INVALID_ARGUMENT naming the field, also at input.instanceId for an instance of another app or beyond the
// publisher's tenant; NOT_FOUND at input.appSlug, input.version and input.instanceId; FORBIDDEN; LIMIT_EXCEEDED with
// 200 gaps of the app that have not ended.
func (s *Service) Raise(ctx context.Context, in RaiseInput) (out *Gap, err error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		out, err = raise(ctx, t, in)
		return err
	})
	return out, err
}

func raise(ctx context.Context, t *tx.Tx, in RaiseInput) (*Gap, error) {
	app, err := appOf(ctx, t, in.AppSlug)
	if err != nil {
		return nil, err
	}
	if app == nil {
		return nil, fault.From(audit.Missing(t, raising, authz.GapRaise, "")).At("input.appSlug")
	}
	if err := audit.Require(t, raising, authz.GapRaise, app.Object(), ""); err != nil {
		return nil, err
	}
	fresh := made{ID: ids.New(ids.Gap)}
	where := app.Object()
	repeated, err := idem.Claim(ctx, t, idem.Key{Verb: raising, TenantID: where.TenantID, ProjectID: where.ProjectID,
		Value: in.IdempotencyKey, Input: in}, &fresh)
	if err != nil {
		return nil, err
	}
	if repeated {
		return one(ctx, t, `SELECT `+columns+` FROM gap WHERE id = $1`, fresh.ID)
	}
	note := Note{ID: fresh.ID, App: *app, Version: in.Version, Kind: in.Kind, Title: in.Title,
		Description: in.Description, Evidence: in.Evidence, InstanceID: in.InstanceID, Key: authz.GapRaise}
	if note.ManifestID, err = versionOf(ctx, t, app, in.Version); err != nil {
		return nil, err
	}
	if err := instanceOf(ctx, t, app, in.InstanceID); err != nil {
		return nil, err
	}
	if err := room(ctx, t, app); err != nil {
		return nil, err
	}
	return Take(ctx, t, note)
}

// versionOf finds a version of the app; nil for none named.
func versionOf(ctx context.Context, t *tx.Tx, app *App, version string) (*ids.ID, error) {
	if version == "" {
		return nil, nil
	}
	var id ids.ID
	err := t.QueryRow(ctx, `SELECT id FROM manifest WHERE app_slug = $1 AND version = $2`, app.Slug, version).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, fault.New(fault.NotFound, "app %q has no version %.100q", app.Slug, version).At("input.version")
	}
	if err != nil {
		return nil, fmt.Errorf("load version %.100s of %s: %w", version, app.Slug, err)
	}
	return &id, nil
}

// instanceOf refuses an instance that the gap cannot name. What one tenant runs is shown to no other, and an app's
// publisher reads its gaps.
func instanceOf(ctx context.Context, t *tx.Tx, app *App, id *ids.ID) error {
	const path = "input.instanceId"
	if id == nil {
		return nil
	}
	var of authz.Object
	var slug, family string
	err := t.QueryRow(ctx, `SELECT tenant_id, project_id, id, app_slug, permission_family FROM instance
		WHERE id = $1`, *id).
		Scan(&of.TenantID, &of.ProjectID, &of.InstanceID, &slug, &family)
	if errors.Is(err, pgx.ErrNoRows) {
		return fault.NoSuch().At(path)
	}
	if err != nil {
		return fmt.Errorf("load instance %s: %w", *id, err)
	}
	key, err := authz.FamilyKey(family, "instance.read") // its own: the refusal below names its app
	if err != nil {
		return err
	}
	switch {
	case authz.RequireOn(t.Actor, key, of) != nil:
		return fault.NoSuch().At(path)
	case slug != app.Slug:
		return fault.New(fault.InvalidArgument, "the instance is of app %q: name one of %q", slug, app.Slug).At(path)
	case app.TenantID != nil && *app.TenantID != of.TenantID:
		return fault.New(fault.InvalidArgument,
			"the instance belongs to another tenant than the app's publisher, who reads "+
				"this gap: leave it out, and describe what happened").At(path)
	}
	return nil
}

// room refuses one gap too many of an app that have not ended, and lets one caller at a time count them.
func room(ctx context.Context, t *tx.Tx, app *App) error {
	if _, err := t.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('gaps of ' || $1, 0))`,
		app.Slug); err != nil {
		return fmt.Errorf("lock the gaps of %s: %w", app.Slug, err)
	}
	var live int
	if err := t.QueryRow(ctx, `SELECT count(*) FROM gap WHERE app_slug = $1 AND NOT state = ANY ($2)`, app.Slug,
		[]string{string(lifecycle.GapDeclined), string(lifecycle.GapClosed)}).Scan(&live); err != nil {
		return fmt.Errorf("count gaps: %w", err)
	}
	if live >= maxUndecided {
		return fault.New(fault.LimitExceeded, "app %q has %d open gaps, which is the maximum: have some decided first",
			app.Slug, live).
			At("input.appSlug")
	}
	return nil
}
