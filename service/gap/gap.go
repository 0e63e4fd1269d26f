// Package gap holds the gap log: what was found missing in the platform while apps were brought to it. Publishers and a
// failed check of onboarding raise a gap, the platform's operators decide it, and a release closes it.
package gap

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/onboarding"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/rows"
)

// Service holds the verbs and reads.
type Service struct {
	// DB is the database.
	DB *tx.DB
}

// Gap is an entry of the log.
type Gap struct {
	ID ids.ID
	// TenantID and ProjectID publish the app; nil for one of the platform.
	TenantID, ProjectID *ids.ID
	AppSlug             string
	// ManifestID and Version are the version that it was found with; nil and empty for none.
	ManifestID *ids.ID
	Version    string
	// Condition is the check that failed; nil for a gap that was raised by hand.
	Condition          *onboarding.Condition
	Kind               lifecycle.GapKind
	State              lifecycle.GapState
	Title, Description string
	Evidence           []string
	InstanceID         *ids.ID
	RaisedBy           authz.Ref
	CreatedAt          time.Time
	// DecidedBy, DecidedAt and Decision are of the last decision; nil and empty before it.
	DecidedBy *authz.Ref
	DecidedAt *time.Time
	Decision  string
	// ClosedBy, ClosedAt, Release, ReleaseManifestID and CloseReason are of its end; nil and empty before it.
	ClosedBy          *authz.Ref
	ClosedAt          *time.Time
	Release           string
	ReleaseManifestID *ids.ID
	CloseReason       string
}

// IsNode marks Gap as an object with a global id.
func (Gap) IsNode() {}

// GetID is the gap's global id.
func (g Gap) GetID() ids.ID { return g.ID }

const columns = `id, tenant_id, project_id, app_slug, manifest_id, version, condition, kind, state, title, description,
	evidence, instance_id, raiser_kind, raiser_id, raiser_name, created_at, decider_kind, decider_id, decider_name,
	decided_at, decision, closer_kind, closer_id, closer_name, closed_at, release, release_manifest_id, close_reason`

func scan(row pgx.CollectableRow) (*Gap, error) {
	g := &Gap{}
	var condition string
	var decider, closer authz.Ref
	err := row.Scan((*string)(&g.ID), &g.TenantID, &g.ProjectID, &g.AppSlug, &g.ManifestID, &g.Version, &condition,
		(*string)(&g.Kind), (*string)(&g.State), &g.Title, &g.Description, &g.Evidence, &g.InstanceID,
		&g.RaisedBy.Kind, &g.RaisedBy.ID, &g.RaisedBy.Name, &g.CreatedAt, &decider.Kind, &decider.ID, &decider.Name,
		&g.DecidedAt, &g.Decision, &closer.Kind, &closer.ID, &closer.Name, &g.ClosedAt, &g.Release,
		&g.ReleaseManifestID,
		&g.CloseReason)
	if condition != "" {
		failed := onboarding.Condition(condition)
		g.Condition = &failed
	}
	if decider.ID != "" {
		g.DecidedBy = &decider
	}
	if closer.ID != "" {
		g.ClosedBy = &closer
	}
	return g, err
}

// object is what the publisher's keys are required on.
func (g *Gap) object() authz.Object {
	return authz.Object{TenantID: rows.Value(g.TenantID), ProjectID: rows.Value(g.ProjectID)}
}

// one runs a statement that returns at most one gap; nil for none.
func one(ctx context.Context, t *tx.Tx, sql string, args ...any) (*Gap, error) {
	found, err := t.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	g, err := pgx.CollectOneRow(found, scan)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return g, err
}

// Get reads an entry. Key: gap.read on the app's publisher, or on the platform. NOT_FOUND when it is missing or hidden.
func (s *Service) Get(ctx context.Context, id ids.ID) (*Gap, error) {
	var found *Gap
	actor, err := s.DB.Read(ctx, tx.Row(&found, scan, `SELECT `+columns+` FROM gap WHERE id = $1`, id))
	if err != nil {
		return nil, err
	}
	if found == nil {
		return nil, fault.NoSuch()
	}
	return found, authz.RequireOn(actor, authz.GapRead, found.object())
}

// App is the app that a gap is about.
type App struct {
	Slug string
	// TenantID and ProjectID publish it; nil for one of the platform.
	TenantID, ProjectID *ids.ID
}

// Object is what the publisher's keys are required on.
func (a *App) Object() authz.Object {
	return authz.Object{TenantID: rows.Value(a.TenantID), ProjectID: rows.Value(a.ProjectID)}
}

func scanApp(row pgx.CollectableRow) (*App, error) {
	a := &App{}
	return a, row.Scan(&a.Slug, &a.TenantID, &a.ProjectID)
}

const appSQL = `SELECT slug, publisher_tenant_id, publisher_project_id FROM app WHERE slug = $1`

// appOf loads an app by its short name; nil for none that the caller sees.
func appOf(ctx context.Context, t *tx.Tx, slug string) (*App, error) {
	found, err := t.Query(ctx, appSQL, slug)
	if err != nil {
		return nil, fmt.Errorf("load app %s: %w", slug, err)
	}
	app, err := pgx.CollectOneRow(found, scanApp)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("load app %s: %w", slug, err)
	}
	return app, nil
}
