package catalog

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

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
)

// standing is everything that decides whether a manifest may take its next step.
type standing struct {
	publisher
	row         db.Manifest
	description []byte
	reports     []brought
	artifacts   []pinned
	canary      *string // another version that is the app's canary
	smoked      bool
	users       int
	// Of the terms of its next step: the app's, the database's time, launches of the canary that count, who took it to
	// STAGED and CANARY with the accounts of the same maker, and since when it is DEPRECATED.
	terms           []byte
	now, deprecated time.Time
	launches        int
	whose           rollout.Whose
	takers          []string
	// onboarding are the conditions that the newest check that was kept lacks; nil for no check.
	onboarding *string
}

const standingSQL = `SELECT m.id, m.stage, m.sandbox, m.adapter_name, m.document, m.canary_halted_at,
	m.canary_halt_reason, a.publisher_tenant_id, a.publisher_project_id,
	(SELECT d.description FROM adapter d WHERE d.name = m.adapter_name), ` + broughtSQL + `,
	(SELECT coalesce(jsonb_agg(jsonb_build_object('Name', f.name, 'Digest', f.digest, 'Stage', f.stage, 'Quarantined', f.quarantined_at IS NOT NULL,
		'Why', f.quarantine_reason, 'Kind', f.kind, 'Platform', f.tenant_id IS NULL,
		'Smoked', (m.stage = 'STAGED' OR m.sandbox) AND platform.smoked(f.id)) ORDER BY f.id), '[]') FROM artifact f JOIN manifest_artifact p ON p.artifact_id = f.id WHERE p.manifest_id = m.id),
	(SELECT c.version FROM manifest c WHERE c.app_slug = m.app_slug AND c.stage = 'CANARY' AND c.id <> m.id),
	m.stage = 'DRAFT' AND EXISTS (SELECT FROM instance i WHERE i.manifest_id = m.id AND i.smoke AND i.released_at IS NOT NULL
		AND EXISTS (SELECT FROM operation o WHERE o.instance_id = i.id AND o.kind = 'INSTANCE_CREATE' AND o.state = 'SUCCEEDED' AND coalesce(o.outcome, 'NORMAL') = 'NORMAL')
		AND EXISTS (SELECT FROM operation o WHERE o.instance_id = i.id AND o.kind = 'INSTANCE_DECOMMISSION' AND o.state = 'SUCCEEDED' AND coalesce(o.outcome, 'NORMAL') = 'NORMAL')),
	CASE WHEN m.stage = 'DEPRECATED' THEN platform.users_of_manifest(m.id) ELSE 0 END,
	a.promotion_terms, m.canary_started_at, now(),
	coalesce(confidence.launches, 0), coalesce(confidence.whose, ''),
	ARRAY (WITH took AS (SELECT DISTINCT p.actor_id AS id FROM promotion p WHERE p.object_id = m.id AND p.to_stage IN ('STAGED', 'CANARY')),
			same AS (SELECT id FROM took UNION SELECT s.maker_id FROM service_account s JOIN took USING (id) WHERE s.maker_id IS NOT NULL)
		SELECT id FROM same UNION SELECT s.id FROM service_account s JOIN same ON s.maker_id = same.id),
	coalesce((SELECT max(p.created_at) FROM promotion p WHERE p.object_id = m.id AND p.to_stage = 'DEPRECATED'), m.created_at),
	(SELECT array_to_string(r.lacking, ', ') FROM onboarding_record r WHERE r.manifest_id = m.id ORDER BY r.id DESC LIMIT 1)
	FROM manifest m JOIN app a ON a.id = m.app_id
	LEFT JOIN LATERAL platform.canary_confidence(m.id) confidence ON m.stage = 'CANARY' WHERE m.id = ANY ($1)`

func scanStanding(row pgx.CollectableRow) (*standing, error) {
	x := &standing{}
	var reports, artifacts []byte
	err := row.Scan((*string)(&x.row.ID), (*string)(&x.row.Stage), &x.row.Sandbox, &x.row.AdapterName, &x.row.Document,
		&x.row.CanaryHaltedAt, &x.row.CanaryHaltReason,
		&x.tenant, &x.project, &x.description, &reports, &artifacts, &x.canary, &x.smoked, &x.users,
		&x.terms, &x.row.CanaryStartedAt, &x.now, &x.launches, &x.whose, &x.takers, &x.deprecated, &x.onboarding)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(reports, &x.reports); err != nil {
		return nil, fmt.Errorf("read the reports: %w", err)
	}
	if err := json.Unmarshal(artifacts, &x.artifacts); err != nil {
		return nil, fmt.Errorf("read the artifacts: %w", err)
	}
	return x, nil
}

// Lacks returns what each of several manifests lacks for its next stage, from the database alone. Only callers with
// manifest.read on the app's publisher get it; others, who can do nothing about it, get nothing.
func (s *Service) Lacks(ctx context.Context, manifests []ids.ID) (map[ids.ID][]*fault.Reason, error) {
	var found []*standing
	actor, err := s.DB.Read(ctx, tx.Rows(&found, scanStanding, standingSQL, texts(manifests)))
	if err != nil {
		return nil, err
	}
	out := make(map[ids.ID][]*fault.Reason, len(manifests))
	for _, one := range found {
		if !actor.AllowsOn(authz.ManifestRead, one.object()) {
			continue
		}
		terms, err := one.lacksTerms(actor.ID)
		if err != nil {
			return nil, err
		}
		reasons := []*fault.Reason{}
		for _, reason := range append(one.lacks(), unmet(terms)...) {
			reasons = append(reasons, &reason)
		}
		out[one.row.ID] = reasons
	}
	return out, nil
}

// lacks is what keeps the manifest from its next stage.
func (x *standing) lacks() []fault.Reason {
	switch x.row.Stage {
	case lifecycle.StageDraft:
		return append(lacks(x.artifacts, lifecycle.StageStaged), x.lacksEvidence()...)
	case lifecycle.StageStaged:
		reasons := lacks(x.artifacts, lifecycle.StageCanary)
		if x.canary != nil {
			reasons = append(reasons, fault.Reason{Code: fault.Conflict,
				Message: fmt.Sprintf("version %s is the app's canary: an app has one at a time", *x.canary),
				Path:    "input.to"})
		}
		return reasons
	case lifecycle.StageCanary:
		reasons := lacks(x.artifacts, lifecycle.StageActive)
		if x.row.CanaryHaltedAt != nil {
			reasons = append(reasons, haltedCanary(&x.row).Reasons...)
		}
		return reasons
	case lifecycle.StageDeprecated:
		if x.users > 0 {
			return []fault.Reason{{Code: fault.FailedPrecondition,
				Message: fmt.Sprintf("%d live instances use it", x.users), Path: "input.to"}}
		}
	}
	return nil
}

// lacksEvidence is what a draft lacks to be staged, its artifacts aside.
func (x *standing) lacksEvidence() (reasons []fault.Reason) {
	parsed, err := manifest.New(x.row.Document)
	if err != nil {
		return fault.From(err).Reasons
	}
	if !x.smoked {
		reasons = append(reasons, fault.Reason{Code: fault.EvidenceMissing, Path: "input.smokeInstanceId",
			Message: "no smoke instance that you see has run this version and was torn down with proof"})
	}
	var said described.Description
	if len(x.description) == 0 || json.Unmarshal(x.description, &said) != nil {
		return append(reasons, fault.Reason{Code: fault.FailedPrecondition, Path: "adapter",
			Message: fmt.Sprintf("adapter %q has never described itself", x.row.AdapterName)})
	}
	reasons = append(reasons, said.Findings(parsed)...)
	_, missing := controllerLacks(parsed, said.Build, x.reports)
	return append(reasons, missing...)
}
