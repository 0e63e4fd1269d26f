package overlay

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/policy"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
)

// EffectivePolicy is what a project may do with an app.
type EffectivePolicy struct {
	// Policy is what the overlays leave.
	Policy *policy.Effective
	// Entitlement is how far the project's right to the app goes; nil when it has none that holds.
	Entitlement *Limits
	// App is the app's slug.
	App string
}

// Limits is how far an entitlement goes; nil parts have no bound.
type Limits struct {
	// MaxInstances counts the project's instances of the app, MaxMembers the members of one of them, MaxGpus the
	// GPUs of one's allocations.
	MaxInstances, MaxMembers, MaxGpus *int
	// Versions are constraints, any of which lets a version in; none for all.
	Versions []string
}

const entitlement = "ENTITLEMENT"

// LoadTerms reads the terms of an app in a project, in one statement. Until the transaction ends no other writes them:
// call it before the project or anything below it is locked.
func LoadTerms(ctx context.Context, t *tx.Tx, project *db.Project, appSlug string) (*EffectivePolicy, error) {
	rows, err := t.Query(ctx, `SELECT term_id, term_kind, term_document FROM platform.terms_of($1, $2, $3, $4)`,
		project.TenantID, project.ID, appSlug, t.Now)
	if err != nil {
		return nil, fmt.Errorf("load the terms of %s: %w", project.ID, err)
	}
	var id, kind string
	var document []byte
	var levels []policy.Level
	out := &EffectivePolicy{App: appSlug}
	_, err = pgx.ForEachRow(rows, []any{&id, &kind, &document}, func() error {
		if kind == entitlement {
			out.Entitlement = &Limits{}
			return json.Unmarshal(document, out.Entitlement)
		}
		level, err := LevelOf(ids.ID(id), lifecycle.PolicyScope(kind), document)
		levels = append(levels, level)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("load the terms of %s: %w", project.ID, err)
	}
	out.Policy = policy.Merge(levels...)
	return out, nil
}

// Held is the limits of the entitlement that a project has to an app at a moment, for a pipelined read; nil when
// it has none.
func Held(into **Limits, projectID ids.ID, appSlug string, at time.Time) tx.Query {
	return tx.Row(into, func(row pgx.CollectableRow) (*Limits, error) {
		out := &Limits{}
		return out, row.Scan(&out.MaxInstances, &out.MaxMembers, &out.MaxGpus, &out.Versions)
	}, `SELECT max_instances, max_members, max_gpus, versions FROM entitlement
		WHERE project_id = $1 AND app_slug = $2 AND revoked_at IS NULL AND (expires_at IS NULL
		OR expires_at > $3)`, projectID, appSlug, at)
}

// Entitled refuses a project that may not have the app at all: NOT_ENTITLED at the path.
func (t *EffectivePolicy) Entitled(path string) error {
	if t.Entitlement != nil {
		return nil
	}
	return fault.New(fault.NotEntitled, "the project is not entitled to app %q", t.App).At(path)
}

// Counts reports whether what the project has, which Count reads, must be known.
func (t *EffectivePolicy) Counts() bool {
	return t.Policy.Counts() || (t.Entitlement != nil && t.Entitlement.MaxInstances != nil)
}

// Wanted is what is checked against an entitlement; what is 0 or empty is not checked.
type Wanted struct {
	Version string
	// Instances are the project's of the app, Members and GPUs those of one instance, all with what is requested.
	Instances, Members, GPUs int
	// The input fields that request them.
	VersionPath, InstancesPath, MembersPath, GPUsPath string
}

// Within checks what is wanted against the limits: NOT_ENTITLED with a reason for each that is passed,
// ENTITLEMENT_LIMIT or VERSION_DENIED. A nil Limits, without an entitlement, limits nothing.
func (l *Limits) Within(want Wanted) error {
	if l == nil {
		return nil
	}
	var reasons []fault.Reason
	if want.Version != "" && len(l.Versions) > 0 && !policy.Admits(l.Versions, want.Version) {
		reasons = append(reasons, fault.Reason{Code: fault.VersionDenied, Path: want.VersionPath,
			Message: fmt.Sprintf("the entitlement does not include version %s", want.Version)})
	}
	for _, one := range []struct {
		most *int
		n    int
		of   string
		path string
	}{
		{l.MaxInstances, want.Instances, "instances of the app", want.InstancesPath},
		{l.MaxMembers, want.Members, "members of one instance", want.MembersPath},
		{l.MaxGpus, want.GPUs, "GPUs of one instance", want.GPUsPath},
	} {
		if one.most != nil && one.n > *one.most {
			reasons = append(reasons, fault.Reason{Code: fault.EntitlementLimit, Path: one.path,
				Message: fmt.Sprintf("the entitlement allows %d %s, and this would make %d", *one.most, one.of, one.n)})
		}
	}
	if len(reasons) == 0 {
		return nil
	}
	return fault.New(fault.NotEntitled, "the project's entitlement does not allow this: %s",
		reasons[0].Message).With(reasons...)
}
