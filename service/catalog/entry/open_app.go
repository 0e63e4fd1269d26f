package entry

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/rollout"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbadapter "github.com/gpuaas/app-platform/ent/generated/db/adapter"
	dbapp "github.com/gpuaas/app-platform/ent/generated/db/app"
	dbmanifest "github.com/gpuaas/app-platform/ent/generated/db/manifest"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/catalog"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/ledger/audit"
	"github.com/gpuaas/app-platform/service/onboarding"
)

// OpenAppInput is the platform's word on an app that its publisher tried in a sandbox.
type OpenAppInput struct {
	AppSlug, Reason string
	// Override is why ACTIVE versions are opened without what other tenants' trust rests on; empty to require it.
	Override string
}

func (in OpenAppInput) check() error {
	var input check.Input
	input.Text("input.reason", in.Reason, 1, check.MaxReason)
	input.Text("input.override", in.Override, 0, check.MaxReason)
	return input.Err()
}

// OpenApp takes an app out of its sandbox: it is an app of the catalog like every other, with its publisher, versions,
// stages, evidence and instances. Key: app.manage on the platform.
//
// Its ACTIVE version becomes everybody's, so that it needs what others' trust rests on: reports and smokes signed by
// registered runners (EVIDENCE_MISSING naming what is missing; override sets it aside). FAILED_PRECONDITION for an
// app that is in no sandbox, while a version is a canary, which the sandbox's one project was all of, and while one
// names an adapter that is in a sandbox itself. INVALID_ARGUMENT naming the field, NOT_FOUND at input.appSlug.
func (s *Service) OpenApp(ctx context.Context, in OpenAppInput) (out *db.App, err error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		out, err = openApp(ctx, t, in)
		return err
	})
	return out, err
}

func openApp(ctx context.Context, t *tx.Tx, in OpenAppInput) (*db.App, error) {
	const action = "openApp"
	if err := audit.Require(t, action, authz.AppManage, authz.Object{}, ids.ID("")); err != nil {
		return nil, err
	}
	row, err := t.App.Query().Where(dbapp.Slug(in.AppSlug)).ForUpdate().Only(ctx) // a version being published waits
	if db.IsNotFound(err) {
		return nil, fault.New(fault.NotFound, "there is no app %q", in.AppSlug).At("input.appSlug")
	}
	if err != nil {
		return nil, fmt.Errorf("load app %s: %w", in.AppSlug, err)
	}
	if !row.Sandbox {
		return nil, fault.New(fault.FailedPrecondition, "app %q is not in a sandbox: it is open already", in.AppSlug).
			At("input.appSlug")
	}
	versions, err := t.Manifest.Query().Where(dbmanifest.AppID(row.ID), dbmanifest.StageNEQ(lifecycle.StageRetired)).
		Order(db.Asc(dbmanifest.FieldID)).ForUpdate().All(ctx)
	if err != nil {
		return nil, fmt.Errorf("lock the versions of %s: %w", in.AppSlug, err)
	}
	if err := ready(ctx, t, versions); err != nil {
		return nil, err
	}
	if err := trusted(ctx, t, row, versions, in.Override); err != nil {
		return nil, err
	}
	if _, err := t.Exec(ctx, `UPDATE manifest SET sandbox = false WHERE app_id = $1`, row.ID); err != nil {
		return nil, fmt.Errorf("open the versions of %s: %w", in.AppSlug, err)
	}
	if _, err := t.Exec(ctx, `UPDATE manifest_artifact SET sandbox = false WHERE sandbox AND manifest_id IN (
		SELECT id FROM manifest WHERE app_id = $1)`, row.ID); err != nil {
		return nil, fmt.Errorf("open the pins of %s: %w", in.AppSlug, err)
	}
	opened, err := row.Update().SetSandbox(false).Save(ctx)
	if err != nil {
		return nil, fmt.Errorf("open app %s: %w", in.AppSlug, err)
	}
	return opened, audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.AppManage, ObjectID: row.ID,
		Reason: in.Reason, Before: map[string]any{"sandbox": true},
		After: map[string]any{"app": in.AppSlug, "sandbox": false, "override": in.Override}})
}

// ready refuses an app with a canary, or with a version whose adapter is in a sandbox.
func ready(ctx context.Context, t *tx.Tx, versions []*db.Manifest) error {
	var adapters []string
	for _, version := range versions {
		if version.Stage == lifecycle.StageCanary {
			return fault.New(fault.FailedPrecondition,
				"version %s is the canary of one project: its publisher must promote it "+
					"to ACTIVE or take it back to STAGED first", version.Version).At("input.appSlug")
		}
		adapters = append(adapters, version.AdapterName)
	}
	boxed, err := t.Adapter.Query().Where(dbadapter.NameIn(adapters...), dbadapter.ProjectIDNotNil()).
		Order(db.Asc(dbadapter.FieldName)).All(ctx)
	if err != nil {
		return fmt.Errorf("load the adapters: %w", err)
	}
	if len(boxed) == 0 {
		return nil
	}
	return fault.New(fault.FailedPrecondition, "adapter %q is in a sandbox: register it for all projects first, by "+
		"registerAdapter (appctl admin adapter register %s %s)", boxed[0].Name, boxed[0].Name,
		boxed[0].URL).At("input.appSlug")
}

// trusted refuses versions that other tenants would get on their publisher's word alone.
func trusted(ctx context.Context, t *tx.Tx, app *db.App, versions []*db.Manifest, override string) error {
	if override != "" {
		return nil
	}
	var reached []*db.Manifest
	for _, version := range versions {
		if version.Stage == lifecycle.StageActive {
			reached = append(reached, version)
		}
	}
	lacking, err := catalog.LacksOpening(ctx, t, reached)
	if err != nil {
		return err
	}
	unready, err := lacksOnboarding(ctx, t, app, reached)
	if lacking = append(lacking, unready...); err != nil || len(lacking) == 0 {
		return err
	}
	reasons := make([]fault.Reason, len(lacking))
	for i, text := range lacking {
		reasons[i] = fault.Reason{Code: fault.EvidenceMissing, Message: text, Path: "input.appSlug"}
	}
	return fault.New(fault.EvidenceMissing,
		"other tenants would get versions without signed evidence: have what is missing "+
			"signed, or set it aside with input.override").With(reasons...)
}

// lacksOnboarding is what of onboarding the versions lack, where the app's terms require it for what every tenant gets.
func lacksOnboarding(ctx context.Context, t *tx.Tx, app *db.App, versions []*db.Manifest) (lacking []string,
	err error) {
	terms, err := rollout.TermsOf(app.PromotionTerms)
	if err != nil {
		return nil, fmt.Errorf("read the terms of app %s: %w", app.Slug, err)
	}
	if !terms.RequireOnboarding {
		return nil, nil
	}
	for _, version := range versions {
		found, err := onboarding.Lacks(ctx, t, app.Slug, version.Version)
		if err != nil {
			return nil, err
		}
		for _, text := range found {
			lacking = append(lacking, fmt.Sprintf("version %s: %s", version.Version, text))
		}
	}
	return lacking, nil
}
