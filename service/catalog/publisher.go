package catalog

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbmanifest "github.com/gpuaas/app-platform/ent/generated/db/manifest"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// publisher is who acts for an app: a project, or the platform when both are nil. An artifact may be of a whole tenant.
type publisher struct {
	tenant, project *ids.ID
}

// why is why a step is taken, and why its terms were set aside; the latter is empty when the step met them.
type why struct{ reason, override string }

// object is where the publisher's keys are required.
func (p publisher) object() authz.Object {
	return authz.Object{TenantID: rows.Value(p.tenant), ProjectID: rows.Value(p.project)}
}

// attempt is a verb on a manifest that is about to be allowed or refused.
type attempt struct {
	action string
	key    authz.Key
	path   string // of the manifest's id in the input
}

// versions are a manifest and those of the same app that its steps touch, locked.
type versions struct {
	publisher
	row, active, canary *db.Manifest
}

// lock authorises the attempt on the app's publisher and locks the manifest with its app's active one and canary, one
// app at a time. CONFLICT when one of them was moved by another promotion while this one waited.
func (a attempt) lock(ctx context.Context, t *tx.Tx, id ids.ID) (*versions, error) {
	out := &versions{}
	var slug string
	var stage lifecycle.Stage
	var activeID, canaryID *ids.ID
	err := t.QueryRow(ctx, `SELECT m.app_slug, m.stage, a.publisher_tenant_id, a.publisher_project_id,
		(SELECT o.id FROM manifest o WHERE o.app_slug = m.app_slug AND o.stage = 'ACTIVE'),
		(SELECT o.id FROM manifest o WHERE o.app_slug = m.app_slug AND o.stage = 'CANARY')
		FROM manifest m JOIN app a ON a.id = m.app_id
		WHERE m.id = $1`, id).Scan(&slug, &stage, &out.tenant, &out.project, &activeID, &canaryID)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, audit.Missing(t, a.action, a.key, id)
	}
	if err != nil {
		return nil, fmt.Errorf("load manifest %s: %w", id, err)
	}
	if err := audit.Require(t, a.action, a.key, out.object(), id); err != nil {
		return nil, err
	}
	if _, err := t.Exec(ctx, `SELECT FROM app WHERE slug = $1 FOR NO KEY UPDATE`, slug); err != nil {
		return nil, fmt.Errorf("lock app %s: %w", slug, err)
	}
	locked, err := t.Manifest.Query().Where(dbmanifest.AppSlug(slug),
		dbmanifest.Or(dbmanifest.ID(id), dbmanifest.StageIn(lifecycle.StageActive, lifecycle.StageCanary))).
		Order(db.Asc(dbmanifest.FieldID)).ForUpdate().All(ctx)
	if err != nil {
		return nil, fmt.Errorf("lock manifest %s: %w", id, err)
	}
	out.sort(id, locked)
	return out, out.moved(a.path, stage, activeID, canaryID)
}

// sort says which of the locked ones is which.
func (v *versions) sort(id ids.ID, locked []*db.Manifest) {
	for _, m := range locked {
		if m.ID == id {
			v.row = m
		}
		switch m.Stage {
		case lifecycle.StageActive:
			v.active = m
		case lifecycle.StageCanary:
			v.canary = m
		}
	}
}

// moved refuses when what was seen before the lock is not so any more.
func (v *versions) moved(path string, stage lifecycle.Stage, activeID, canaryID *ids.ID) error {
	conflict := func(format string, args ...any) error {
		return fault.New(fault.Conflict, format, args...).At(path)
	}
	switch {
	case v.row == nil:
		return fault.NoSuch()
	case v.row.Stage != stage:
		return conflict("the version's stage changed from %s to %s during this request: try again", stage, v.row.Stage)
	case v.active != nil && (activeID == nil || *activeID != v.active.ID):
		return conflict("version %s became ACTIVE during this request: try again", v.active.Version)
	case v.canary != nil && (canaryID == nil || *canaryID != v.canary.ID):
		return conflict("version %s became the canary during this request: try again", v.canary.Version)
	}
	return nil
}
