package reference

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/service/kit/page"
)

// catalogPage is how many manifests a page of the catalog has.
const catalogPage = 50

type release struct {
	ID           string `json:"id"`
	AppSlug      string `json:"appSlug"`
	Version      string `json:"version"`
	DisplayName  string `json:"displayName"`
	Summary      string `json:"summary"`
	Stage        string `json:"stage"`
	Digest       string `json:"digest"`
	ArtifactKind string `json:"artifactKind"`
	CreatedAt    string `json:"createdAt"`
}

type releaseEdge struct {
	Cursor string  `json:"cursor"`
	Node   release `json:"node"`
}

type releases struct {
	Edges    []releaseEdge `json:"edges"`
	PageInfo pageInfo      `json:"pageInfo"`
}

// works says whether the caller works in any project at all, which is what the catalog asks.
func (c *caller) works() bool {
	var bindings []struct{ Role string }
	return c.id != nil && json.Unmarshal(c.bindings, &bindings) == nil && len(bindings) > 0
}

// catalog answers the newest manifests of an app.
func (s *server) catalog(w http.ResponseWriter, r *http.Request) {
	var who caller
	batch, slug, found := &pgx.Batch{}, r.PathValue("slug"), releases{Edges: []releaseEdge{}}
	if !enter(batch, r, &who) {
		refuse(w, http.StatusUnauthorized)
		return
	}
	batch.Queue(`SELECT id, app_slug, version, display_name, summary, stage, digest, artifact_kind, created_at
		FROM manifest
		WHERE app_slug = $1 ORDER BY id DESC LIMIT $2`, slug, catalogPage+1).Query(found.scan)
	if err := s.pool.SendBatch(r.Context(), batch).Close(); err != nil {
		refuse(w, http.StatusInternalServerError)
		return
	}
	if !who.works() {
		refuse(w, http.StatusNotFound)
		return
	}
	answer(w, map[string]any{"manifests": found})
}

func (l *releases) scan(rows pgx.Rows) error {
	for rows.Next() {
		var n release
		var created time.Time
		if err := rows.Scan(&n.ID, &n.AppSlug, &n.Version, &n.DisplayName, &n.Summary, &n.Stage, &n.Digest,
			&n.ArtifactKind, &created); err != nil {
			return err
		}
		n.CreatedAt = stamp(created)
		l.Edges = append(l.Edges, releaseEdge{Cursor: page.Cursor("all manifests", n.ID), Node: n})
	}
	if len(l.Edges) > catalogPage {
		l.Edges, l.PageInfo.HasNextPage = l.Edges[:catalogPage], true
	}
	if n := len(l.Edges); n > 0 {
		l.PageInfo.EndCursor = &l.Edges[n-1].Cursor
	}
	return rows.Err()
}

type artifact struct {
	ID        string  `json:"id"`
	Name      string  `json:"name"`
	MediaType string  `json:"mediaType"`
	Ref       string  `json:"ref"`
	Digest    string  `json:"digest"`
	SizeBytes float64 `json:"sizeBytes"`
	Stage     string  `json:"stage"`
	Kind      string  `json:"kind"`
	CreatedAt string  `json:"createdAt"`
}

// artifact answers the artifact of a digest.
func (s *server) artifact(w http.ResponseWriter, r *http.Request) {
	var who caller
	var found *artifact
	batch := &pgx.Batch{}
	if !enter(batch, r, &who) {
		refuse(w, http.StatusUnauthorized)
		return
	}
	batch.Queue(`SELECT id, name, media_type, ref, digest, size_bytes, stage, kind, created_at FROM artifact
		WHERE digest = $1 AND tenant_id IS NULL LIMIT 1`,
		r.PathValue("digest")).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var created time.Time
			found = &artifact{}
			if err := rows.Scan(&found.ID, &found.Name, &found.MediaType, &found.Ref, &found.Digest, &found.SizeBytes,
				&found.Stage, &found.Kind, &created); err != nil {
				return err
			}
			found.CreatedAt = stamp(created)
		}
		return rows.Err()
	})
	if err := s.pool.SendBatch(r.Context(), batch).Close(); err != nil {
		refuse(w, http.StatusInternalServerError)
		return
	}
	if found == nil || !who.works() {
		refuse(w, http.StatusNotFound)
		return
	}
	answer(w, map[string]any{"artifact": found})
}
