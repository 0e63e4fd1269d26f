package onboarding

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	baseline "github.com/gpuaas/app-platform/domain/onboarding"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/gap"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// CheckInput is a check that is to be kept.
type CheckInput struct {
	AppSlug, Version, Reason string
}

const checking = "checkAppOnboarding"

// Check checks a version as Read does, keeps the result, and notes each failed condition as a gap, once for the
// version. Key: manifest.smoke on the app's publisher, or on the platform. INVALID_ARGUMENT naming the field; NOT_FOUND
// at input.appSlug when the app or the version is missing or hidden; FORBIDDEN.
func (s *Service) Check(ctx context.Context, in CheckInput) (out *Record, err error) {
	var input check.Input
	input.Text("input.reason", in.Reason, 0, check.MaxReason)
	if err := input.Err(); err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		out, err = keep(ctx, t, in)
		return err
	})
	return out, err
}

func keep(ctx context.Context, t *tx.Tx, in CheckInput) (*Record, error) {
	read, err := load(ctx, t, in.AppSlug, in.Version)
	if err != nil {
		return nil, err
	}
	if read.version == nil {
		return nil, fault.From(audit.Missing(t, checking, authz.ManifestSmoke, "")).At("input.appSlug")
	}
	where := read.version.Object()
	if err := audit.Require(t, checking, authz.ManifestSmoke, where, read.version.id); err != nil {
		return nil, err
	}
	report, err := read.report()
	if err != nil {
		return nil, err
	}
	record := &Record{ID: ids.New(ids.Onboarding), ManifestID: report.ManifestID, Passed: report.Passed,
		Checks: report.Checks, CheckedAt: t.Now, CheckedBy: t.Actor.Ref(), Reason: in.Reason}
	if err := record.write(ctx, t, read.version); err != nil {
		return nil, err
	}
	if err := read.raise(ctx, t, record); err != nil {
		return nil, err
	}
	lacking := baseline.Lacking(record.Checks)
	if err := audit.Write(ctx, t, audit.Entry{Action: checking, Key: authz.ManifestSmoke, Object: where,
		ObjectID: read.version.id, Reason: in.Reason, After: map[string]any{"record": record.ID, "app": report.AppSlug,
			"version": report.Version, "lacking": lacking}}); err != nil {
		return nil, err
	}
	read.shown(t.Actor, record.Checks)
	return record, nil
}

// write keeps the record, and deletes all but the newest MaxRecords of the version.
func (r *Record) write(ctx context.Context, t *tx.Tx, of *subject) error {
	checks, err := json.Marshal(r.Checks)
	if err != nil {
		return fmt.Errorf("encode the checks: %w", err)
	}
	if _, err := t.Exec(ctx, `INSERT INTO onboarding_record (id, manifest_id, tenant_id, project_id, lacking, checks,
		reason,
		actor_kind, actor_id, actor_name, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`, r.ID, r.ManifestID,
		of.TenantID, of.ProjectID, names(baseline.Lacking(r.Checks)), checks, r.Reason, r.CheckedBy.Kind,
		r.CheckedBy.ID,
		r.CheckedBy.Name, r.CheckedAt); err != nil {
		return fmt.Errorf("store a check of %s: %w", r.ManifestID, err)
	}
	if _, err := t.Exec(ctx, `DELETE FROM onboarding_record WHERE manifest_id = $1 AND id NOT IN (
		SELECT id FROM onboarding_record WHERE manifest_id = $1 ORDER BY id DESC
		LIMIT $2)`, r.ManifestID, MaxRecords); err != nil {
		return fmt.Errorf("delete old checks of %s: %w", r.ManifestID, err)
	}
	return nil
}

// raise notes in the gap log what failed. An unknown verdict is not a gap of the platform: nothing was tried.
func (r *reading) raise(ctx context.Context, t *tx.Tx, record *Record) error {
	for _, one := range record.Checks {
		if one.Verdict != baseline.Failed {
			continue
		}
		made, err := gap.Take(ctx, t, r.note(one))
		if err != nil {
			return err
		}
		if made != nil {
			r.gaps[one.Condition] = made.ID
		}
	}
	return nil
}

// note is a failed check as a gap.
func (r *reading) note(one *baseline.Check) gap.Note {
	note := gap.Note{ID: ids.New(ids.Gap), App: r.version.App, ManifestID: &r.version.id, Version: r.version.version,
		Condition: one.Condition, Kind: one.Condition.Gap(), Title: fmt.Sprintf("%s failed: %s", one.Condition,
			one.Message),
		Description: one.Remedy, Key: authz.ManifestSmoke}
	for _, each := range one.Evidence {
		switch {
		case each.ID != nil:
			note.Evidence = append(note.Evidence, string(*each.ID))
		case each.URL != "":
			note.Evidence = append(note.Evidence, each.URL)
		}
		if each.Of.Instance != "" && note.InstanceID == nil {
			note.InstanceID = &each.Of.Instance
		}
	}
	return note
}

// names are conditions as PostgreSQL takes an array.
func names(conditions []baseline.Condition) []string {
	out := make([]string, len(conditions))
	for i, one := range conditions {
		out[i] = string(one)
	}
	return out
}

// Lacks returns, in words, what keeps a version from ACTIVE where its app's terms require onboarding, by the present
// records. The caller has already authorised the step.
func Lacks(ctx context.Context, t *tx.Tx, slug, version string) (lacking []string, err error) {
	read, err := load(ctx, t, slug, version)
	if err != nil {
		return nil, err
	}
	if read.version == nil {
		return nil, fault.NoSuch()
	}
	report, err := read.report()
	if err != nil {
		return nil, err
	}
	for _, one := range report.Checks {
		if one.Verdict != baseline.Passed {
			lacking = append(lacking, fmt.Sprintf("onboarding %s is %s: %s", one.Condition, one.Verdict, one.Message))
		}
	}
	return lacking, nil
}
