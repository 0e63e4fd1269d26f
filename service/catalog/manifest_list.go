package catalog

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/kit/rows"
)

// maxPinning bounds the listed manifests that pin an artifact.
const maxPinning = 50

// ManifestFilter narrows a list of manifests; what is empty narrows nothing.
type ManifestFilter struct {
	// Search must be part of the app's short name or of the manifest's name, in any case; at most 100 bytes.
	Search string
	// AppSlug is the app, Stages the stages.
	AppSlug string
	Stages  []lifecycle.Stage
}

// ManifestList lists the manifests of all apps that the caller sees in the catalog, newest first. Key: manifest.read in
// any scope; manifests of families that the caller does not see are left out. INVALID_ARGUMENT at search.
func (s *Service) ManifestList(ctx context.Context, filter ManifestFilter,
	args page.Args) (*page.Page[*db.Manifest], error) {
	const list = "all manifests"
	if len(filter.Search) > maxSearch {
		return nil, fault.New(fault.InvalidArgument, "search may have at most %d bytes", maxSearch).At("search")
	}
	after := ids.ID("zz") // beyond every id
	if err := args.Decode(list, &after); err != nil {
		return nil, err
	}
	// Nearly every caller that may read manifests sees every family: one read does. For others the read is repeated,
	// each time narrowed to fewer families.
	for families := authz.Families(); ; {
		var found []*db.Manifest
		actor, err := s.DB.Read(ctx, tx.Rows(&found, rows.Manifest, `SELECT `+rows.ManifestColumns+` FROM manifest
			WHERE id < $1 AND EXISTS (SELECT FROM app a WHERE a.id = manifest.app_id AND a.permission_family = ANY ($2))
			AND ($3 = '' OR app_slug = $3) AND (cardinality($4::text[]) = 0 OR stage = ANY ($4)) AND ($5 = '' OR app_slug ILIKE $5 OR display_name ILIKE $5)
			ORDER BY id DESC LIMIT $6`, after, families, filter.AppSlug, words(filter.Stages), pattern(filter.Search),
			args.First+1))
		if err != nil {
			return nil, err
		}
		if err := authz.RequireAnywhere(actor, authz.ManifestRead); err != nil {
			return nil, err
		}
		seen := seenFamilies(actor)
		if len(seen) >= len(families) {
			return page.Cut(args, found, func(row *db.Manifest) string { return page.Cursor(list, row.ID) }), nil
		}
		families = seen
	}
}

// pattern is a search as a LIKE pattern; empty for none.
func pattern(search string) string {
	if search == "" {
		return ""
	}
	return "%" + likeEscapes.Replace(search) + "%"
}

// words is stages as PostgreSQL takes an array; never nil, which would be NULL.
func words(stages []lifecycle.Stage) []string {
	out := make([]string, len(stages))
	for i, stage := range stages {
		out[i] = string(stage)
	}
	return out
}

// CanaryManifests reads the canary of several apps at once, by their short names; an app without one is left out. Key:
// <family>.catalog.read in any scope.
func (s *Service) CanaryManifests(ctx context.Context, slugs []string) (map[string]*db.Manifest, error) {
	return s.inStage(ctx, slugs, lifecycle.StageCanary)
}

// inStage reads the one manifest of each app that is ACTIVE, or CANARY.
func (s *Service) inStage(ctx context.Context, slugs []string, stage lifecycle.Stage) (map[string]*db.Manifest, error) {
	var found []*db.Manifest
	actor, err := s.DB.Read(ctx, tx.Rows(&found, rows.Manifest, `SELECT `+rows.ManifestColumns+` FROM manifest
		WHERE app_slug = ANY ($1) AND stage = '`+string(stage)+`'`, slugs))
	if err != nil {
		return nil, err
	}
	if err := authz.RequireAnywhere(actor, authz.FamilyKeys("catalog.read")...); err != nil {
		return nil, err
	}
	out := make(map[string]*db.Manifest, len(found))
	for _, row := range found {
		out[row.AppSlug] = row
	}
	return out, nil
}

// pictured is a document with the app that it is of.
type pictured struct {
	slug     string
	document []byte
}

// Icons reads the pictures of several apps at once, of the active manifest or else of the newest; empty for an app
// without one. Key: <family>.catalog.read in any scope.
func (s *Service) Icons(ctx context.Context, slugs []string) (map[string]string, error) {
	var found []pictured
	actor, err := s.DB.Read(ctx, tx.Rows(&found, func(row pgx.CollectableRow) (p pictured, err error) {
		return p, row.Scan(&p.slug, &p.document)
	}, `SELECT DISTINCT ON (app_slug) app_slug, document FROM manifest WHERE app_slug = ANY ($1)
		ORDER BY app_slug, stage <> 'ACTIVE', id DESC`, slugs))
	if err != nil {
		return nil, err
	}
	if err := authz.RequireAnywhere(actor, authz.FamilyKeys("catalog.read")...); err != nil {
		return nil, err
	}
	out := make(map[string]string, len(slugs))
	for _, slug := range slugs {
		out[slug] = ""
	}
	for _, one := range found {
		var document struct {
			Icon string `json:"icon"`
		}
		if err := json.Unmarshal(one.document, &document); err != nil {
			return nil, fault.New(fault.Internal, "a stored manifest cannot be read").Because(err)
		}
		out[one.slug] = document.Icon
	}
	return out, nil
}

// PinnedBy reads the newest 50 manifests that pin each artifact, newest first. Key: manifest.read in any scope.
func (s *Service) PinnedBy(ctx context.Context, artifacts []ids.ID) (map[ids.ID][]*db.Manifest, error) {
	var pins []pin
	var found []*db.Manifest
	const newest = `SELECT o.id AS artifact_id, p.manifest_id FROM unnest($1::text[]) o (id)
		JOIN LATERAL (SELECT manifest_id FROM manifest_artifact x WHERE x.artifact_id = o.id ORDER BY x.manifest_id DESC LIMIT $2) p ON true`
	actor, err := s.DB.Read(ctx,
		tx.Rows(&pins, func(row pgx.CollectableRow) (p pin, err error) {
			return p, row.Scan((*string)(&p.artifactID), (*string)(&p.manifestID))
		}, newest+` ORDER BY p.manifest_id DESC`, texts(artifacts), maxPinning),
		tx.Rows(&found, rows.Manifest, `SELECT `+rows.ManifestColumns+` FROM manifest
			WHERE id IN (SELECT n.manifest_id FROM (`+newest+`) n)`, texts(artifacts), maxPinning))
	if err != nil {
		return nil, err
	}
	if err := authz.RequireAnywhere(actor, authz.ManifestRead); err != nil {
		return nil, err
	}
	return grouped(pins, found, func(row *db.Manifest) ids.ID { return row.ID }, func(p pin) (ids.ID, ids.ID) {
		return p.artifactID, p.manifestID
	}), nil
}
