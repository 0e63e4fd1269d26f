package policy

import (
	"context"
	"fmt"
	"maps"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/money"
	"github.com/gpuaas/app-platform/domain/policy"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/overlay"
	"github.com/gpuaas/app-platform/service/kit/rows"
)

// maxLooked bounds each kind of thing that a preview checks.
const maxLooked = 5_000

// scene is a level with everything below it that policy restricts.
type scene struct {
	projects []*db.Project
	overlays map[ids.ID]*policy.Level // by project, tenant, or empty for the platform's
	written  []ids.ID                 // the places that differ from what is stored
	things   []thing
	merged   map[[3]*policy.Level]*policy.Effective
}

// thing is something of a project that policy may refuse when it is requested again.
type thing struct {
	project *db.Project
	id      *ids.ID // nil for what is no object of its own
	name    string
	ask     func(e *policy.Effective) error
}

// with returns the scene with another overlay in a place.
func (s *scene) with(at place, document *policy.Document) *scene {
	out := *s
	out.overlays, out.merged, out.written = maps.Clone(s.overlays), make(map[[3]*policy.Level]*policy.Effective),
		[]ids.ID{at.key()}
	out.overlays[at.key()] = &policy.Level{Scope: at.scope, Document: document}
	return &out
}

// above are the levels above a project's own.
func (s *scene) above(project *db.Project) (levels []policy.Level) {
	for _, key := range []ids.ID{"", project.TenantID} {
		if level := s.overlays[key]; level != nil {
			levels = append(levels, *level)
		}
	}
	return levels
}

// effective is what is left of a project's choices; projects with the same overlays share one.
func (s *scene) effective(project *db.Project) *policy.Effective {
	key := [3]*policy.Level{s.overlays[""], s.overlays[project.TenantID], s.overlays[project.ID]}
	if found := s.merged[key]; found != nil {
		return found
	}
	levels := s.above(project)
	if key[2] != nil {
		levels = append(levels, *key[2])
	}
	made := policy.Merge(levels...)
	s.merged[key] = made
	return made
}

// look reads a scene in one pipelined round trip.
func look(ctx context.Context, t *tx.Tx, at place) (*scene, error) {
	s := &scene{overlays: make(map[ids.ID]*policy.Level), merged: make(map[[3]*policy.Level]*policy.Effective)}
	facts := &facts{}
	batch := &pgx.Batch{}
	where := ` ($1 = '' OR tenant_id = $1) AND ($2 = '' OR project_id = $2) `
	collect(batch, &s.projects, rows.ProjectRef, `SELECT id, tenant_id FROM project WHERE ($1 = '' OR tenant_id = $1)
		AND ($2 = '' OR id = $2)
		ORDER BY id DESC LIMIT $3`, at)
	collect(batch, &facts.overlays, placed, `SELECT id, scope, document, coalesce(project_id, tenant_id, '')
		FROM policy_overlay
		WHERE superseded_at IS NULL AND (tenant_id IS NULL OR ((project_id IS NULL OR $2 IN ('', project_id))
		AND $1 IN ('', tenant_id)))
		ORDER BY id DESC LIMIT $3`, at)
	collect(batch, &facts.instances, pgx.RowToStructByPos[instanceFact], `SELECT i.id, i.project_id, i.name, i.app_slug,
		i.app_version,
			i.operating_mode, i.control_plane_scope,
			ARRAY(SELECT a ->> 'ref' FROM json_array_elements(convert_from(m.document, 'UTF8')::json -> 'artifacts') a),
			(SELECT count(*) FROM member WHERE instance_id = i.id AND NOT removed)
		FROM (SELECT * FROM instance WHERE released_at IS NULL AND`+where+`ORDER BY id DESC LIMIT $3) i JOIN manifest m
		ON m.id = i.manifest_id`, at)
	collect(batch, &facts.allocations, pgx.RowToStructByPos[allocationFact], `WITH picked AS (SELECT * FROM allocation
		WHERE released_at IS NULL AND`+where+`ORDER BY id DESC LIMIT $3),
			kinds AS (SELECT DISTINCT tenant_id, project_id, shape, gpu_count, sku, region FROM picked)
		SELECT p.id, p.project_id, p.name, p.region, p.sku, p.gpu_count, coalesce(h.price_currency, ''),
		coalesce(h.price_hourly, 0)
		FROM picked p JOIN kinds k USING (tenant_id, project_id, shape, gpu_count, sku, region)
		LEFT JOIN LATERAL platform.hourly_now(k.tenant_id, k.project_id, platform.billing_currency(k.tenant_id), k.shape,
		k.gpu_count, k.sku,
			k.region) h ON true ORDER BY p.id DESC`, at)
	collect(batch, &facts.entitlements, pgx.RowToStructByPos[entitlementFact],
		`SELECT project_id, app_slug FROM entitlement
		WHERE revoked_at IS NULL AND (expires_at IS NULL
		OR expires_at > now()) AND`+where+`ORDER BY id DESC LIMIT $3`, at)
	collect(batch, &facts.volumes, pgx.RowToStructByPos[volumeFact], `SELECT v.id, v.project_id, v.name, c.name,
		v.size_gib,
			coalesce(h.price_currency, ''), coalesce(h.price_hourly, 0)
		FROM (SELECT * FROM volume WHERE deleted_at IS NULL AND`+where+`ORDER BY id DESC LIMIT $3) v
		JOIN storage_class c ON c.id = v.storage_class_id
		LEFT JOIN LATERAL platform.volume_hourly_now(v.tenant_id, v.project_id, platform.billing_currency(v.tenant_id), 1,
			v.size_gib, c.name) h ON v.lost_at IS NULL ORDER BY v.id DESC`, at)
	if err := t.SendBatch(ctx, batch).Close(); err != nil {
		return nil, fmt.Errorf("read what the policy applies to: %w", err)
	}
	s.fill(facts)
	return s, nil
}

// collect queues a read of a place.
func collect[T any](batch *pgx.Batch, into *[]T, scan func(pgx.CollectableRow) (T, error), sql string, at place) {
	batch.Queue(sql, at.tenantID, at.projectID, maxLooked).Query(func(found pgx.Rows) (err error) {
		*into, err = pgx.CollectRows(found, scan)
		return err
	})
}

// facts are the rows of a scene.
type facts struct {
	overlays     []placedLevel
	instances    []instanceFact
	allocations  []allocationFact
	entitlements []entitlementFact
	volumes      []volumeFact
}

type placedLevel struct {
	policy.Level
	at ids.ID
}

type instanceFact struct {
	ID, ProjectID            ids.ID
	Name, AppSlug, Version   string
	OperatingMode, PlaneKind string
	Refs                     []string
	Members                  int
}

type allocationFact struct {
	ID, ProjectID     ids.ID
	Name, Region, SKU string
	GPUs              int
	// Currency is empty when no price is set, and Hourly what an hour of it costs.
	Currency string
	Hourly   money.Decimal
}

type volumeFact struct {
	ID, ProjectID ids.ID
	Name, Class   string
	SizeGiB       int
	// Currency is empty when its class has no price, and Hourly what an hour of it costs.
	Currency string
	Hourly   money.Decimal
}

type entitlementFact struct {
	ProjectID ids.ID
	AppSlug   string
}

func placed(row pgx.CollectableRow) (out placedLevel, err error) {
	var id, scope string
	var document []byte
	if err := row.Scan(&id, &scope, &document, (*string)(&out.at)); err != nil {
		return out, err
	}
	out.Level, err = overlay.LevelOf(ids.ID(id), lifecycle.PolicyScope(scope), document)
	return out, err
}
