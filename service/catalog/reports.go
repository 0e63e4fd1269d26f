package catalog

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/evidence"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/manifest"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
)

// controllerKind is the artifactKind whose manifests are staged by reports of their adapter as well: it runs with the
// platform's trust in it, for every tenant.
const controllerKind = "controller"

// brought is a report that was brought for a manifest.
type brought struct {
	ID      ids.ID                 `json:"id"`
	Kind    lifecycle.EvidenceKind `json:"kind"`
	Digest  string                 `json:"digest"`
	Summary evidence.Summary       `json:"summary"`
	Passed  bool                   `json:"passed"`
	// Runner signed it, and is not revoked; empty otherwise.
	Runner string `json:"runner"`
}

// broughtSQL is the reports of one manifest as one JSON list, newest first.
const broughtSQL = `(SELECT coalesce(jsonb_agg(jsonb_build_object('id', e.id, 'kind', e.kind, 'digest', e.digest, 'summary', e.summary,
	'passed', e.passed, 'runner',
	coalesce((SELECT r.name FROM evidence_runner r WHERE r.id = e.runner_id AND r.revoked_at IS NULL), '')) ORDER BY e.id DESC), '[]') FROM promotion_evidence e WHERE e.manifest_id = m.id)`

// reported proves a controller by the newest report of each kind of its adapter's current build.
func reported(ctx context.Context, t *tx.Tx, row *db.Manifest, m *manifest.Manifest,
	build string) ([]reportEvidence, error) {
	reports, err := reportsOf(ctx, t, row)
	if err != nil {
		return nil, err
	}
	counted, missing := controllerLacks(m, build, reports)
	if len(missing) > 0 {
		return nil, fault.New(fault.EvidenceMissing,
			"a version with its own controller needs more evidence for STAGED").With(missing...)
	}
	return counted, nil
}

// reportsOf are the reports that were brought for a manifest, newest first.
func reportsOf(ctx context.Context, t *tx.Tx, row *db.Manifest) (reports []brought, err error) {
	found, err := t.Query(ctx, `SELECT `+broughtSQL+` FROM manifest m WHERE m.id = $1`, row.ID)
	if err != nil {
		return nil, fmt.Errorf("load the reports of %s: %w", row.ID, err)
	}
	encoded, err := pgx.CollectOneRow(found, pgx.RowTo[[]byte])
	if err != nil {
		return nil, fmt.Errorf("load the reports of %s: %w", row.ID, err)
	}
	if err := json.Unmarshal(encoded, &reports); err != nil {
		return nil, fmt.Errorf("read the reports of %s: %w", row.ID, err)
	}
	return reports, nil
}

// controllerLacks is what a manifest lacks because it is a controller's, and the reports that count.
func controllerLacks(m *manifest.Manifest, build string, reports []brought) (counted []reportEvidence,
	missing []fault.Reason) {
	if m.ArtifactKind != controllerKind {
		return nil, nil
	}
	counted, missing = controllerReports(m, build, reports)
	if m.Lifecycle == nil {
		missing = append([]fault.Reason{{Code: fault.EvidenceMissing, Path: "document.lifecycle",
			Message: "the manifest declares no behaviour of upgrade, rollback and deletion: publish a version " +
				"that does"}}, missing...)
	}
	return counted, missing
}

// controllerReports are the newest reports of each kind, and what is missing of them.
func controllerReports(m *manifest.Manifest, build string, reports []brought) (counted []reportEvidence,
	missing []fault.Reason) {
	add := func(path, format string, args ...any) {
		missing = append(missing, fault.Reason{Code: fault.EvidenceMissing, Path: path,
			Message: fmt.Sprintf(format, args...)})
	}
	for _, kind := range []lifecycle.EvidenceKind{lifecycle.EvidenceConformance, lifecycle.EvidenceTenancy} {
		one := newest(reports, kind, m, build)
		word := strings.ToLower(string(kind))
		switch {
		case one == nil:
			add("reports."+word, "no %s report of adapter %s, build %s, was submitted", word, m.Adapter, build)
		case !one.Passed:
			add("reports."+word, "the newest %s report of build %s has not passed: %d failed, required and "+
				"not passed: %s", word, build, one.Summary.Failed, strings.Join(one.Summary.Missing, ", "))
		default:
			counted = append(counted, reportEvidence{one.ID, kind, one.Digest})
		}
	}
	return counted, missing
}

// newest is the newest report of a kind that is of the manifest's app, adapter and this build.
func newest(reports []brought, kind lifecycle.EvidenceKind, m *manifest.Manifest, build string) *brought {
	for i, one := range reports {
		if one.Kind == kind && one.Summary.Build == build && ofManifest(one.Summary, m.Adapter, m.App) == "" {
			return &reports[i]
		}
	}
	return nil
}
