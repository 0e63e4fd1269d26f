// Package onboarding checks from what is recorded whether a version of an app is ready for everybody, and keeps the
// result. The conditions are domain/onboarding's; here are the rows that they are judged by, read in one transaction.
package onboarding

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	baseline "github.com/gpuaas/app-platform/domain/onboarding"
	"github.com/gpuaas/app-platform/domain/rollout"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/gap"
)

// Service holds the verb and the read.
type Service struct {
	// DB is the database.
	DB *tx.DB
}

// Report is whether a version is ready.
type Report struct {
	AppSlug    string
	ManifestID ids.ID
	Version    string
	Stage      lifecycle.Stage
	// Required reports whether the app's terms need all conditions for the step to ACTIVE.
	Required bool
	// Passed reports whether all conditions have passed.
	Passed bool
	// Checks are the seven, and CheckedAt is when they were checked.
	Checks    []*baseline.Check
	CheckedAt time.Time
	// Records are the checks that were kept, newest first.
	Records []*Record
}

// Record is a check that was kept.
type Record struct {
	ID, ManifestID ids.ID
	Passed         bool
	Checks         []*baseline.Check
	CheckedAt      time.Time
	CheckedBy      authz.Ref
	Reason         string
}

// MaxRecords is how many records of a version are kept.
const MaxRecords = 20

const recordColumns = `r.id, r.manifest_id, cardinality(r.lacking) = 0, r.checks, r.created_at, r.actor_kind, r.actor_id,
	r.actor_name, r.reason`

func scanRecord(row pgx.CollectableRow) (*Record, error) {
	r := &Record{}
	var checks []byte
	if err := row.Scan((*string)(&r.ID), (*string)(&r.ManifestID), &r.Passed, &checks, &r.CheckedAt, &r.CheckedBy.Kind,
		&r.CheckedBy.ID, &r.CheckedBy.Name, &r.Reason); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(checks, &r.Checks); err != nil {
		return nil, fmt.Errorf("read the checks of %s: %w", r.ID, err)
	}
	return r, nil
}

// Read checks a version of an app, or its ACTIVE or else its newest one, and keeps nothing. Key: manifest.read on the
// app's publisher, or on the platform. NOT_FOUND when the app or the version is missing or hidden, FORBIDDEN.
func (s *Service) Read(ctx context.Context, slug, version string) (*Report, error) {
	var read reading
	actor, err := s.DB.Read(ctx, read.queries(slug, version)...)
	if err != nil {
		return nil, err
	}
	if read.version == nil {
		return nil, fault.NoSuch()
	}
	if err := authz.RequireOn(actor, authz.ManifestRead, read.version.Object()); err != nil {
		return nil, err
	}
	report, err := read.report()
	if err != nil {
		return nil, err
	}
	read.shown(actor, report.Checks)
	for _, record := range report.Records {
		read.shown(actor, record.Checks)
	}
	return report, nil
}

// report judges what was read.
func (r *reading) report() (*Report, error) {
	facts, err := r.facts()
	if err != nil {
		return nil, err
	}
	terms, err := rollout.TermsOf(r.version.terms)
	if err != nil {
		return nil, fmt.Errorf("read the terms of app %s: %w", r.version.Slug, err)
	}
	checks := baseline.Judge(facts)
	return &Report{AppSlug: r.version.Slug, ManifestID: r.version.id, Version: r.version.version,
		Stage:    r.version.stage,
		Required: terms.RequireOnboarding, Passed: len(baseline.Lacking(checks)) == 0, Checks: checks,
		CheckedAt: r.version.now, Records: r.records}, nil
}

// keys are the keys that evidence of a kind requires besides the one for the version.
var keys = map[baseline.Kind]authz.Key{
	baseline.OfOperation: authz.OperationRead, baseline.OfTask: authz.TaskRead, baseline.OfAudit: authz.AuditRead,
	baseline.OfAccount: authz.ServiceAccountRead,
}

// shown removes the evidence that the actor may not read, and adds the gaps that the actor may read.
func (r *reading) shown(actor *authz.Actor, checks []*baseline.Check) {
	for _, check := range checks {
		check.Evidence = slices.DeleteFunc(check.Evidence, func(e *baseline.Evidence) bool {
			return !sees(actor, e.Of)
		})
		if id, noted := r.gaps[check.Condition]; noted && actor.AllowsOn(authz.GapRead, r.version.Object()) {
			check.GapID = &id
		}
	}
}

// sees reports whether the actor may see evidence that belongs there.
func sees(actor *authz.Actor, of baseline.Owner) bool {
	key, need := keys[of.Kind]
	if of.Kind == baseline.OfInstance {
		family, err := authz.FamilyKey(of.Family, "instance.read")
		if err != nil {
			return false
		}
		key, need = family, true
	}
	return !need || actor.AllowsOn(key, authz.Object{TenantID: of.Tenant, ProjectID: of.Project,
		InstanceID: of.Instance})
}

// subject is the version that is checked.
type subject struct {
	gap.App
	id          ids.ID
	version     string
	stage       lifecycle.Stage
	adapter     string
	document    []byte
	description []byte
	terms       []byte
	now         time.Time
}

func scanSubject(row pgx.CollectableRow) (*subject, error) {
	s := &subject{}
	return s, row.Scan((*string)(&s.id), &s.Slug, &s.TenantID, &s.ProjectID, &s.version, (*string)(&s.stage),
		&s.adapter, &s.document, &s.description, &s.terms, &s.now)
}
