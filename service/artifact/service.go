// Package artifact holds the verbs on artifacts: what is pinned by digest is fetched, checked and
// trusted step by step.
package artifact

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/page"
	"github.com/gpuaas/app-platform/service/rows"
)

// Service holds the verbs on artifacts.
type Service struct {
	DB *tx.DB
	// Registries is how registries are reached.
	Registries Registries
}

// evidence is what checking an artifact found.
type evidence struct {
	ManifestMediaType string    `json:"manifestMediaType"`
	Parts             int       `json:"parts"` // layers and config, or the manifests of an index
	SizeBytes         int64     `json:"sizeBytes"`
	CheckedAt         time.Time `json:"checkedAt"`
}

func (s *Service) evidence(found *Found) (json.RawMessage, error) {
	encoded, err := json.Marshal(evidence{ManifestMediaType: found.MediaType, Parts: found.Parts, SizeBytes: found.SizeBytes, CheckedAt: s.DB.Now()})
	if err != nil {
		return nil, fmt.Errorf("encode the evidence: %w", err)
	}
	return encoded, nil
}

// Artifacts lists the artifacts, newest first. Key: artifact.read in any scope.
func (s *Service) Artifacts(ctx context.Context, _ Filter, args page.Args) (*page.Page[*db.Artifact], error) {
	const list = "artifacts"
	after := ids.ID("zz") // beyond every id
	if err := args.Decode(list, &after); err != nil {
		return nil, err
	}
	var found []*db.Artifact
	actor, err := s.DB.Read(ctx, tx.Rows(&found, rows.Artifact, `SELECT `+rows.ArtifactColumns+` FROM artifact
		WHERE id < $1 ORDER BY id DESC LIMIT $2`, after, args.First+1))
	if err != nil {
		return nil, err
	}
	if err := authz.RequireAnywhere(actor, authz.ArtifactRead); err != nil {
		return nil, err
	}
	return page.Cut(args, found, func(row *db.Artifact) string { return page.Cursor(list, row.ID) }), nil
}

// Artifact reads one artifact. Key: artifact.read in any scope.
func (s *Service) Artifact(ctx context.Context, id ids.ID) (*db.Artifact, error) {
	var row *db.Artifact
	actor, err := s.DB.Read(ctx, tx.Row(&row, rows.Artifact, `SELECT `+rows.ArtifactColumns+` FROM artifact WHERE id = $1`, id))
	if err != nil {
		return nil, err
	}
	if err := authz.RequireAnywhere(actor, authz.ArtifactRead); err != nil {
		return nil, err
	}
	if row == nil {
		return nil, fault.NoSuch()
	}
	return row, nil
}
