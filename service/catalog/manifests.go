package catalog

import (
	"context"
	"slices"

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

// Manifests lists the manifests of an app, newest first; those that are not released only to their publisher and the
// platform's staff. Key: manifest.read in any scope, and the catalog of the app's family.
func (s *Service) Manifests(ctx context.Context, appSlug string, args page.Args) (*page.Page[*db.Manifest], error) {
	list := "manifests " + appSlug
	after := ids.ID("zz") // beyond every id
	if err := args.Decode(list, &after); err != nil {
		return nil, err
	}
	var found []*db.Manifest
	var family []string
	actor, err := s.DB.Read(ctx, tx.Rows(&found, rows.Manifest, `SELECT `+rows.ManifestColumns+` FROM manifest
		WHERE app_slug = $1 AND id < $2 ORDER BY id DESC LIMIT $3`, appSlug, after, args.First+1),
		tx.Rows(&family, pgx.RowTo[string], `SELECT permission_family FROM app WHERE slug = $1`, appSlug))
	if err != nil {
		return nil, err
	}
	if err := authz.RequireAnywhere(actor, authz.ManifestRead); err != nil {
		return nil, err
	}
	if !sees(actor, family) {
		found = nil
	}
	return page.Cut(args, found, func(row *db.Manifest) string { return page.Cursor(list, row.ID) }), nil
}

// sees reports whether the caller sees the catalog of the family of what was read, if anything was.
func sees(actor *authz.Actor, family []string) bool {
	return len(family) > 0 && slices.Contains(seenFamilies(actor), family[0])
}

// Manifest reads one manifest. Key: manifest.read in any scope, and the catalog of its app's family.
func (s *Service) Manifest(ctx context.Context, id ids.ID) (*db.Manifest, error) {
	var row *db.Manifest
	var family []string
	actor, err := s.DB.Read(ctx, tx.Row(&row, rows.Manifest, `SELECT `+rows.ManifestColumns+` FROM manifest
		WHERE id = $1`, id),
		tx.Rows(&family, pgx.RowTo[string], `SELECT a.permission_family FROM manifest m JOIN app a ON a.id = m.app_id
			WHERE m.id = $1`, id))
	if err != nil {
		return nil, err
	}
	if err := authz.RequireAnywhere(actor, authz.ManifestRead); err != nil {
		return nil, err
	}
	if row == nil || !sees(actor, family) {
		return nil, fault.NoSuch()
	}
	return row, nil
}

// ActiveManifests reads the active manifest of several apps at once, by their short names; an app
// without one is left out. Key: <family>.catalog.read in any scope.
func (s *Service) ActiveManifests(ctx context.Context, slugs []string) (map[string]*db.Manifest, error) {
	return s.inStage(ctx, slugs, lifecycle.StageActive)
}

// pin is an artifact's id with that of a manifest that pins it.
type pin struct{ manifestID, artifactID ids.ID }

// ArtifactsOf reads the artifacts that several manifests pin at once. Key: artifact.read in any scope.
func (s *Service) ArtifactsOf(ctx context.Context, manifests []ids.ID) (map[ids.ID][]*db.Artifact, error) {
	var pins []pin
	var found []*db.Artifact
	actor, err := s.DB.Read(ctx,
		tx.Rows(&pins, func(row pgx.CollectableRow) (p pin, err error) {
			return p, row.Scan((*string)(&p.manifestID), (*string)(&p.artifactID))
		}, `SELECT manifest_id, artifact_id FROM manifest_artifact WHERE manifest_id = ANY ($1)
			ORDER BY artifact_id`, texts(manifests)),
		tx.Rows(&found, rows.Artifact, `SELECT `+rows.ArtifactColumns+` FROM artifact
			WHERE id IN (SELECT artifact_id FROM manifest_artifact WHERE manifest_id = ANY ($1))`, texts(manifests)))
	if err != nil {
		return nil, err
	}
	if err := authz.RequireAnywhere(actor, authz.ArtifactRead); err != nil {
		return nil, err
	}
	return grouped(pins, found, func(row *db.Artifact) ids.ID { return row.ID }, func(p pin) (ids.ID, ids.ID) {
		return p.manifestID, p.artifactID
	}), nil
}

// grouped gives each end of the pins the rows at their other end, in the pins' order; a row that is hidden is left out.
func grouped[T any](pins []pin, found []*T, idOf func(*T) ids.ID, ends func(pin) (of, to ids.ID)) map[ids.ID][]*T {
	byID := make(map[ids.ID]*T, len(found))
	for _, row := range found {
		byID[idOf(row)] = row
	}
	out := make(map[ids.ID][]*T)
	for _, p := range pins {
		of, to := ends(p)
		if row := byID[to]; row != nil {
			out[of] = append(out[of], row)
		}
	}
	return out
}

// Many reads several manifests at once by their ids, for callers that show an instance of each; what is missing is left
// out. Key: manifest.read in any scope.
func (s *Service) Many(ctx context.Context, wanted []ids.ID) (map[ids.ID]*db.Manifest, error) {
	var found []*db.Manifest
	actor, err := s.DB.Read(ctx, tx.Rows(&found, rows.Manifest, `SELECT `+rows.ManifestColumns+` FROM manifest
		WHERE id = ANY ($1)`, texts(wanted)))
	if err != nil {
		return nil, err
	}
	if err := authz.RequireAnywhere(actor, authz.ManifestRead); err != nil {
		return nil, err
	}
	out := make(map[ids.ID]*db.Manifest, len(found))
	for _, row := range found {
		out[row.ID] = row
	}
	return out, nil
}
