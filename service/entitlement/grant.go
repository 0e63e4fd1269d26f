package entitlement

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/policy"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbapp "github.com/gpuaas/app-platform/ent/generated/db/app"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/kit/system"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// Bounds of an entitlement.
const (
	maxEntitledCount = 10_000
	maxEntitledGPUs  = 100_000
	maxVersions      = 20
)

// Limits are how far an entitlement goes; nil parts have no bound.
type Limits struct {
	// MaxInstances counts the project's live instances of the app, MaxMembers the members of one of them, MaxGpus
	// the GPUs of one's allocations.
	MaxInstances, MaxMembers, MaxGpus *int
	// Versions are constraints, any of which lets a version in; none for all.
	Versions []string
}

// GrantInput is a right to launch an app.
type GrantInput struct {
	ProjectID ids.ID
	AppSlug   string
	Limits    Limits
	ExpiresAt *time.Time // nil for never
	Reason    string
}

func (in *GrantInput) check(now time.Time) error {
	var input check.Input
	input.Reason("reason", in.Reason)
	input.Future("expiresAt", in.ExpiresAt, now)
	for _, one := range []struct {
		path string
		n    *int
		most int
	}{{"maxInstances", in.Limits.MaxInstances, maxEntitledCount},
		{"maxMembers", in.Limits.MaxMembers, maxEntitledCount}, {"maxGpus", in.Limits.MaxGpus, maxEntitledGPUs}} {
		if one.n != nil && (*one.n < 1 || *one.n > one.most) {
			input.Bad("limits."+one.path, "must be 1 to %d, or left out for no limit", one.most)
		}
	}
	if len(in.Limits.Versions) > maxVersions {
		input.Bad("limits.versions", "must have at most %d constraints", maxVersions)
		return input.Err()
	}
	for i, text := range in.Limits.Versions {
		if !policy.Constraint(text) {
			input.Bad(fmt.Sprintf("limits.versions.%d", i), "must be a constraint on versions, such as >=1.2 <2")
		}
	}
	return input.Err()
}

// GrantEntitlement lets a project launch an app. Key: entitlement.manage on the project. Limits and end of a
// right that holds already are replaced; one that says the same is answered as it is. What runs beyond the new
// limits goes on, and does not grow.
//
// Faults: INVALID_ARGUMENT naming the limit, NOT_FOUND (project; app at appSlug), FORBIDDEN.
func (s *Service) GrantEntitlement(ctx context.Context, in GrantInput) (out *db.Entitlement, err error) {
	if err := in.check(s.DB.Now()); err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		out, err = grant(ctx, t, in)
		return err
	})
	return out, err
}

func grant(ctx context.Context, t *tx.Tx, in GrantInput) (*db.Entitlement, error) {
	const action = "grantEntitlement"
	object, err := authorise(ctx, t, action, in.ProjectID)
	if err != nil {
		return nil, err
	}
	app, err := t.App.Query().Where(dbapp.Slug(in.AppSlug)).Only(ctx)
	if db.IsNotFound(err) {
		return nil, fault.New(fault.NotFound, "there is no app %.40q", in.AppSlug).At("appSlug")
	}
	if err != nil {
		return nil, fmt.Errorf("load app %s: %w", in.AppSlug, err)
	}
	if err := system.Runs(ctx, t, app, object.TenantID, "appSlug"); err != nil {
		return nil, err
	}
	row, err := held(ctx, t, in.ProjectID, in.AppSlug)
	if err != nil || (row != nil && in.says(row)) {
		return row, err
	}
	entry := audit.Entry{Action: action, Key: authz.EntitlementManage, Object: object, Reason: in.Reason}
	if row != nil {
		entry.Before = granted(row)
		row, err = in.replace(ctx, t, row)
	} else {
		row, err = in.create(ctx, t, object)
	}
	if err != nil {
		return nil, fmt.Errorf("grant entitlement: %w", err)
	}
	entry.ObjectID, entry.After = row.ID, granted(row)
	return row, audit.Write(ctx, t, entry)
}

func (in *GrantInput) create(ctx context.Context, t *tx.Tx, object authz.Object) (*db.Entitlement, error) {
	return t.Entitlement.Create().SetID(ids.New(ids.Entitlement)).SetTenantID(object.TenantID).
		SetProjectID(object.ProjectID).
		SetAppSlug(in.AppSlug).SetGrantedBy(string(t.Actor.ID)).SetReason(in.Reason).
		SetNillableMaxInstances(in.Limits.MaxInstances).
		SetNillableMaxMembers(in.Limits.MaxMembers).SetNillableMaxGpus(in.Limits.MaxGpus).
		SetVersions(in.Limits.Versions).
		SetNillableExpiresAt(in.ExpiresAt).SetCreatedAt(t.Now).Save(ctx)
}

// replace writes the limits over those of a right that holds; whatever is left out has no bound any more.
func (in *GrantInput) replace(ctx context.Context, t *tx.Tx, row *db.Entitlement) (*db.Entitlement, error) {
	versions, err := json.Marshal(in.Limits.Versions)
	if err != nil {
		return nil, err
	}
	_, err = t.Exec(ctx, `UPDATE entitlement SET max_instances = $2, max_members = $3, max_gpus = $4, versions = $5,
		expires_at = $6, reason = $7
		WHERE id = $1`, row.ID, in.Limits.MaxInstances, in.Limits.MaxMembers, in.Limits.MaxGpus, versions,
		in.ExpiresAt, in.Reason)
	if err != nil {
		return nil, err
	}
	return t.Entitlement.Get(ctx, row.ID)
}

// says reports whether a right has these limits and this end already.
func (in *GrantInput) says(row *db.Entitlement) bool {
	end := func(at *time.Time) time.Time {
		if at == nil {
			return time.Time{}
		}
		return *at
	}
	return same(row.MaxInstances, in.Limits.MaxInstances) && same(row.MaxMembers, in.Limits.MaxMembers) &&
		same(row.MaxGpus, in.Limits.MaxGpus) &&
		slices.Equal(row.Versions, in.Limits.Versions) && end(row.ExpiresAt).Equal(end(in.ExpiresAt))
}

func same(a, b *int) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }

// granted is what the audit keeps of a right.
func granted(row *db.Entitlement) map[string]any {
	return map[string]any{"app": row.AppSlug, "maxInstances": row.MaxInstances, "maxMembers": row.MaxMembers,
		"maxGpus":  row.MaxGpus,
		"versions": row.Versions, "expiresAt": row.ExpiresAt}
}
