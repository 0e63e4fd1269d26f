package catalog

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/manifest"
	"github.com/gpuaas/app-platform/domain/rollout"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/catalog/described"
	"github.com/gpuaas/app-platform/service/ledger/audit"
	"github.com/gpuaas/app-platform/service/onboarding"
)

// terms refuses a step whose terms are not met, unless the platform's staff set them aside with a reason:
// EVIDENCE_MISSING naming each term.
func terms(ctx context.Context, t *tx.Tx, v *versions, in PromoteManifestInput) error {
	if in.Override != "" {
		return audit.Require(t, "promoteManifest", authz.ManifestPromote, authz.Object{}, in.ManifestID)
	}
	lacking, err := termsOf(ctx, t, v.row, in.To)
	if err != nil {
		return err
	}
	ready, err := lacksOnboarding(ctx, t, v.row, in.To)
	if lacking = append(lacking, ready...); err != nil || len(lacking) == 0 {
		return err
	}
	return fault.New(fault.EvidenceMissing,
		"the terms of %s are not met: meet them, or have the platform's staff set them aside with input.override",
		in.To).
		With(unmet(lacking)...)
}

// unmet are the reasons of terms that are not met.
func unmet(lacking []string) []fault.Reason {
	reasons := make([]fault.Reason, len(lacking))
	for i, text := range lacking {
		reasons[i] = fault.Reason{Code: fault.EvidenceMissing, Message: text, Path: "input.to"}
	}
	return reasons
}

// termsOf are the terms of the step that are not met, in words: it is read like what a version lacks.
func termsOf(ctx context.Context, t *tx.Tx, row *db.Manifest, to lifecycle.Stage) ([]string, error) {
	if withTerms[row.Stage] != to {
		return nil, nil
	}
	one, err := standingOf(ctx, t, row.ID)
	if err != nil {
		return nil, err
	}
	return one.lacksTerms(t.Actor.ID)
}

func standingOf(ctx context.Context, t *tx.Tx, id ids.ID) (*standing, error) {
	found, err := t.Query(ctx, standingSQL, texts([]ids.ID{id}))
	if err != nil {
		return nil, fmt.Errorf("load what %s lacks: %w", id, err)
	}
	one, err := pgx.CollectExactlyOneRow(found, scanStanding)
	if err != nil {
		return nil, fmt.Errorf("load what %s lacks: %w", id, err)
	}
	return one, nil
}

// lacksOnboarding is what of onboarding has not passed now, where the app's terms require it for a version that every
// tenant gets.
func lacksOnboarding(ctx context.Context, t *tx.Tx, row *db.Manifest, to lifecycle.Stage) ([]string, error) {
	if to != lifecycle.StageActive || row.Sandbox {
		return nil, nil
	}
	var stored []byte
	if err := t.QueryRow(ctx, `SELECT promotion_terms FROM app
		WHERE slug = $1`, row.AppSlug).Scan(&stored); err != nil {
		return nil, fmt.Errorf("read the terms of app %s: %w", row.AppSlug, err)
	}
	wanted, err := rollout.TermsOf(stored)
	if err != nil {
		return nil, fmt.Errorf("read the terms of app %s: %w", row.AppSlug, err)
	}
	if !wanted.RequireOnboarding {
		return nil, nil
	}
	return onboarding.Lacks(ctx, t, row.AppSlug, row.Version)
}

// withTerms are the steps that have terms, by the stage that they leave.
var withTerms = map[lifecycle.Stage]lifecycle.Stage{
	lifecycle.StageStaged: lifecycle.StageCanary, lifecycle.StageCanary: lifecycle.StageActive,
	lifecycle.StageDeprecated: lifecycle.StageRetired,
}

// lacksTerms is what of its next step's terms is not met, if the actor takes the step.
func (x *standing) lacksTerms(actor ids.ID) ([]string, error) {
	if x.row.Sandbox { // others get it only when the platform's staff opens the app, which asks for them
		return nil, nil
	}
	wanted, err := rollout.TermsOf(x.terms)
	if err != nil {
		return nil, fmt.Errorf("read the terms of %s: %w", x.row.ID, err)
	}
	switch x.row.Stage {
	case lifecycle.StageStaged:
		return x.lacksOthers(wanted)
	case lifecycle.StageCanary:
		canary := rollout.Canary{Launches: x.launches, Whose: x.whose, Same: slices.Contains(x.takers, string(actor))}
		if x.row.CanaryStartedAt != nil {
			canary.Age = x.now.Sub(*x.row.CanaryStartedAt)
		}
		return append(wanted.LacksActive(canary), x.lacksRecord(wanted)...), nil
	case lifecycle.StageDeprecated:
		return wanted.LacksRetired(x.now.Sub(x.deprecated)), nil
	}
	return nil, nil
}

// lacksRecord is what the newest check of onboarding that was kept lacks, where the terms require one.
func (x *standing) lacksRecord(wanted rollout.Terms) []string {
	switch {
	case !wanted.RequireOnboarding || x.onboarding != nil && *x.onboarding == "":
		return nil
	case x.onboarding == nil:
		return []string{"no onboarding check was recorded for this version: run checkAppOnboarding"}
	}
	return []string{"the newest recorded onboarding check lacks " + *x.onboarding}
}

// lacksOthers is what a version lacks that its publisher's word is not enough for, before other tenants get it.
func (x *standing) lacksOthers(wanted rollout.Terms) ([]string, error) {
	lacking, err := x.lacksRunner()
	for _, one := range x.artifacts {
		if text := one.LacksSmoke(); text != "" && wanted.SmokedArtifacts {
			lacking = append(lacking, text)
		}
	}
	return lacking, err
}

// LacksOpening is what versions of an app in a sandbox lack to be other tenants', in words, each with its version.
func LacksOpening(ctx context.Context, t *tx.Tx, versions []*db.Manifest) (lacking []string, err error) {
	for _, version := range versions {
		x, err := standingOf(ctx, t, version.ID)
		if err != nil {
			return nil, err
		}
		wanted, err := rollout.TermsOf(x.terms)
		if err != nil {
			return nil, fmt.Errorf("read the terms of %s: %w", version.ID, err)
		}
		missing, err := x.lacksOthers(wanted)
		if err != nil {
			return nil, err
		}
		for _, text := range missing {
			lacking = append(lacking, fmt.Sprintf("version %s: %s", version.Version, text))
		}
	}
	return lacking, nil
}

// lacksRunner returns what a version with its own controller lacks before others than its publisher get it: reports
// that a registered runner signed. Its publisher's own reports stage it, for smoke launches in the publisher's
// projects. What the document calls itself does not matter: an adapter that names the app was written for it, and runs
// with the platform's trust.
func (x *standing) lacksRunner() (lacking []string, err error) {
	parsed, err := manifest.Parse(x.row.Document)
	if err != nil {
		return nil, err
	}
	var said described.Description
	if len(x.description) > 0 {
		if err := json.Unmarshal(x.description, &said); err != nil {
			return nil, fmt.Errorf("read the description of adapter %s: %w", x.row.AdapterName, err)
		}
	}
	if parsed.ArtifactKind != controllerKind && !said.Names(parsed.App) {
		return nil, nil
	}
	signed := slices.DeleteFunc(slices.Clone(x.reports), func(one brought) bool { return one.Runner == "" })
	_, missing := controllerReports(parsed, said.Build, signed)
	for _, reason := range missing {
		lacking = append(lacking, "signed by a registered runner: "+reason.Message)
	}
	return lacking, nil
}
