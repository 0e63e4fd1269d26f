// Package artifact holds the verbs on artifacts: what is pinned by digest is read whole from its source, checked
// against its digests and signatures, and trusted step by step.
//
// A source is never read inside a transaction, since it may be slow: a verb that needs it runs a first transaction that
// finds it allowed and rolls back, reads the source, and then begins again.
package artifact

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/digest"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/custody"
	"github.com/gpuaas/app-platform/internal/fetch"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/kit/rows"
)

// Service holds the verbs on artifacts.
type Service struct {
	DB *tx.DB
	// Vault keeps the sources' credentials.
	Vault *custody.Vault
	// Reach is how sources are reached.
	Reach fetch.Reach
	desk  desk
}

// maxSearch bounds what is searched for, in characters.
const maxSearch = 100

// likeEscapes escapes a text so that a LIKE pattern matches it literally.
var likeEscapes = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

// Filter narrows a list of artifacts; the zero value does not.
type Filter struct {
	// Search is part of the name or the address, at most 100 characters.
	Search string
	// Stages are those wanted; none for all.
	Stages []lifecycle.Stage
	// Quarantined wants those in quarantine, or those that are not.
	Quarantined *bool
}

// Artifacts lists the artifacts, newest first: the platform's, those of the caller's tenants, and what manifests pin.
// Key: artifact.read in any scope. INVALID_ARGUMENT at search.
func (s *Service) Artifacts(ctx context.Context, filter Filter, args page.Args) (*page.Page[*db.Artifact], error) {
	const list = "artifacts"
	if utf8.RuneCountInString(filter.Search) > maxSearch || !printable(filter.Search) {
		return nil, fault.New(fault.InvalidArgument,
			"search may have at most %d characters, none of them control characters", maxSearch).At("search")
	}
	after := ids.ID("zz") // beyond every id
	if err := args.Decode(list, &after); err != nil {
		return nil, err
	}
	stages := make([]string, len(filter.Stages))
	for i, stage := range filter.Stages {
		stages[i] = string(stage)
	}
	var found []*db.Artifact
	actor, err := s.DB.Read(ctx, tx.Rows(&found, rows.Artifact, `SELECT `+rows.ArtifactColumns+` FROM artifact
		WHERE id < $1 AND ($3 = '' OR name ILIKE $4 OR ref ILIKE $4) AND (cardinality($5::text[]) = 0 OR stage = ANY ($5))
			AND ($6::boolean IS NULL OR (quarantined_at IS NOT NULL) = $6) ORDER BY id DESC LIMIT $2`,
		after, args.First+1, filter.Search, "%"+likeEscapes.Replace(filter.Search)+"%", stages, filter.Quarantined))
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
	return s.one(ctx, `WHERE id = $1`, id)
}

// ByDigest reads the artifact of a digest: the given tenant's own if it has one, else the platform's. Key:
// artifact.read in any scope. INVALID_ARGUMENT at digest, NOT_FOUND.
func (s *Service) ByDigest(ctx context.Context, wanted string, tenantID *ids.ID) (*db.Artifact, error) {
	if !digest.Valid(wanted) {
		return nil, fault.New(fault.InvalidArgument,
			"the digest must be sha256: and 64 lower-case hexadecimal digits").At("digest")
	}
	return s.one(ctx, `WHERE digest = $1 AND (tenant_id IS NULL OR tenant_id = $2) ORDER BY tenant_id IS NULL LIMIT 1`,
		wanted, tenantID)
}

func (s *Service) one(ctx context.Context, where string, args ...any) (*db.Artifact, error) {
	var row *db.Artifact
	actor, err := s.DB.Read(ctx, tx.Row(&row, rows.Artifact, `SELECT `+rows.ArtifactColumns+` FROM artifact `+where,
		args...))
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

// PartsOf reads the parts of several artifacts at once, at most 2,048 parts of each, a manifest before what it lists.
// Key: artifact.read in any scope.
func (s *Service) PartsOf(ctx context.Context, artifacts []ids.ID) (map[ids.ID][]*db.ArtifactPart, error) {
	wanted := make([]string, len(artifacts))
	for i, id := range artifacts {
		wanted[i] = string(id)
	}
	var found []*db.ArtifactPart
	actor, err := s.DB.Read(ctx, tx.Rows(&found, rows.ArtifactPart, `SELECT `+rows.ArtifactPartColumns+` FROM
		artifact_part WHERE artifact_id = ANY ($1) ORDER BY artifact_id, position`, wanted))
	if err != nil {
		return nil, err
	}
	if err := authz.RequireAnywhere(actor, authz.ArtifactRead); err != nil {
		return nil, err
	}
	out := make(map[ids.ID][]*db.ArtifactPart, len(artifacts))
	for _, row := range found {
		out[row.ArtifactID] = append(out[row.ArtifactID], row)
	}
	return out, nil
}
