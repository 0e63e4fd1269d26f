package onboarding

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/manifest"
	baseline "github.com/gpuaas/app-platform/domain/onboarding"
	"github.com/gpuaas/app-platform/domain/policy"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/overlay"
)

// reading is everything that a check rests on.
type reading struct {
	version   *subject
	instances []*baseline.Instance
	calls     *baseline.Calls
	acts      []*baseline.Act
	accounts  []*baseline.Account
	reports   []*baseline.Report
	artifacts []*pin
	walks     []*baseline.Walk
	levels    []policy.Level
	records   []*Record
	noted     []note
	// gaps are those that failures with this version were noted as.
	gaps map[baseline.Condition]ids.ID
}

// pin is an artifact with its address, by which policy knows it.
type pin struct {
	baseline.Artifact
	Ref string `json:"ref"`
}

// note is a gap of a condition.
type note struct {
	condition baseline.Condition
	id        ids.ID
}

func scanNote(row pgx.CollectableRow) (n note, err error) {
	return n, row.Scan((*string)(&n.condition), (*string)(&n.id))
}

// queries read a version by its app's short name, empty for the ACTIVE or else the newest one.
func (r *reading) queries(slug, version string) []tx.Query {
	return []tx.Query{
		tx.Row(&r.version, scanSubject, subjectSQL, slug, version),
		tx.Rows(&r.instances, document[*baseline.Instance], instancesSQL, slug, version, baseline.MaxInstances/2,
			baseline.RequiredEvents()),
		tx.Row(&r.calls, document[*baseline.Calls], callsSQL, slug, version, baseline.MaxInstances/2,
			string(fault.Forbidden)),
		tx.Rows(&r.acts, document[*baseline.Act], actsSQL, slug, version, baseline.MaxInstances/2),
		tx.Rows(&r.accounts, document[*baseline.Account], accountsSQL, slug, version, baseline.MaxInstances/2),
		tx.Rows(&r.reports, document[*baseline.Report], reportsSQL, slug, version),
		tx.Rows(&r.artifacts, document[*pin], artifactsSQL, slug, version),
		tx.Rows(&r.walks, document[*baseline.Walk], walksSQL, slug, version, baseline.MaxInstances/2),
		tx.Rows(&r.levels, overlay.Level, levelsSQL, slug),
		tx.Rows(&r.records, scanRecord, recordsSQL, slug, version, MaxRecords),
		tx.Rows(&r.noted, scanNote, gapsSQL, slug, version),
	}
}

// document reads a row that is one JSON document.
func document[T any](row pgx.CollectableRow) (out T, err error) {
	var encoded []byte
	if err := row.Scan(&encoded); err != nil {
		return out, err
	}
	if err := json.Unmarshal(encoded, &out); err != nil {
		return out, fmt.Errorf("read a fact: %w", err)
	}
	return out, nil
}

// load reads a version in a transaction that is open.
func load(ctx context.Context, t *tx.Tx, slug, version string) (*reading, error) {
	r := &reading{}
	for _, query := range r.queries(slug, version) {
		found, err := t.Query(ctx, query.SQL, query.Args...)
		if err != nil {
			return nil, fmt.Errorf("read what is known of %s: %w", slug, err)
		}
		if err := query.Scan(found); err != nil {
			return nil, fmt.Errorf("read what is known of %s: %w", slug, err)
		}
	}
	return r, nil
}

// said is the part of an adapter's description of itself that the checks read.
type said struct {
	Build            string   `json:"build"`
	ContractVersions []string `json:"contractVersions"`
}

// facts are what was read, for the judge.
func (r *reading) facts() (*baseline.Facts, error) {
	r.gaps = map[baseline.Condition]ids.ID{}
	for _, one := range r.noted {
		r.gaps[one.condition] = one.id
	}
	parsed, err := manifest.Parse(r.version.document)
	if err != nil {
		return nil, fmt.Errorf("read manifest %s: %s", r.version.id, err) // it was linted when it was published
	}
	var described said
	if len(r.version.description) > 0 {
		if err := json.Unmarshal(r.version.description, &described); err != nil {
			return nil, fmt.Errorf("read the description of adapter %s: %w", r.version.adapter, err)
		}
	}
	facts := &baseline.Facts{App: r.version.Slug, Version: r.version.version, Adapter: r.version.adapter,
		Build: described.Build, Contracts: described.ContractVersions, Lifecycle: parsed.Lifecycle,
		Runbooks:  parsed.Runbooks,
		Instances: r.instances, Acts: r.acts, Accounts: r.accounts, Reports: r.reports, Walks: r.walks}
	if r.calls != nil {
		facts.Calls = *r.calls
	}
	rules := policy.Merge(r.levels...)
	for _, one := range r.artifacts {
		if refused, ok := fault.As(rules.Source(one.Ref, "")); ok {
			one.Denied = denied(refused)
		}
		facts.Artifacts = append(facts.Artifacts, &one.Artifact)
	}
	return facts, nil
}

// denied is why policy refuses a source.
func denied(refused *fault.Fault) string {
	if len(refused.Reasons) > 0 {
		return refused.Reasons[0].Message
	}
	return refused.Message
}
