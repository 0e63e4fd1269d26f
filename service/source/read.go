package source

import (
	"context"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/origin"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/kit/rows"
)

// read runs queries of sources and keys, which row-level security confines to the platform's and those of the tenants
// that the caller is seen in. Key: source.read in any scope, or one of the others.
func (s *Service) read(ctx context.Context, query tx.Query, others ...authz.Key) error {
	_, err := s.readAs(ctx, query, others...)
	return err
}

// readAs is read, and returns the caller.
func (s *Service) readAs(ctx context.Context, query tx.Query, others ...authz.Key) (*authz.Actor, error) {
	actor, err := s.DB.Read(ctx, query)
	if err != nil {
		return nil, err
	}
	return actor, authz.RequireAnywhere(actor, append([]authz.Key{authz.SourceRead}, others...)...)
}

// shown removes from the platform's sources the user name of their credential, which only the platform's staff may see.
func shown(actor *authz.Actor, found []*db.ArtifactSource) {
	if actor.Allows(authz.SourceRead, "", "") {
		return
	}
	for _, row := range found {
		if row.TenantID == nil {
			row.CredentialUser = ""
		}
	}
}

// List lists the sources that the caller may use, by name: the platform's and those of its tenants, or of one tenant
// and the platform. Those that are switched off are among them. Key: source.read in any scope.
func (s *Service) List(ctx context.Context, tenantID *ids.ID, args page.Args) (*page.Page[*db.ArtifactSource], error) {
	const list = "artifactSources"
	var name string
	var id ids.ID
	if err := args.Decode(list, &name, &id); err != nil {
		return nil, err
	}
	var found []*db.ArtifactSource
	actor, err := s.readAs(ctx, tx.Rows(&found, rows.ArtifactSource, `SELECT `+rows.ArtifactSourceColumns+`
		FROM artifact_source
		WHERE (name, id) > ($1, $2)
		AND ($3::text IS NULL OR tenant_id IS NULL OR tenant_id = $3) ORDER BY name, id
		LIMIT $4`, name, string(id), tenantID, args.First+1))
	if err != nil {
		return nil, err
	}
	shown(actor, found)
	return page.Cut(args, found, func(row *db.ArtifactSource) string {
		return page.Cursor(list, row.Name, row.ID)
	}), nil
}

// Get reads a source. Key: source.read in any scope. NOT_FOUND when it is missing or another tenant's.
func (s *Service) Get(ctx context.Context, id ids.ID) (*db.ArtifactSource, error) {
	var row *db.ArtifactSource
	actor, err := s.readAs(ctx, tx.Row(&row, rows.ArtifactSource, `SELECT `+rows.ArtifactSourceColumns+`
		FROM artifact_source WHERE id = $1`, id))
	if err != nil {
		return nil, err
	}
	if row == nil {
		return nil, fault.NoSuch()
	}
	shown(actor, []*db.ArtifactSource{row})
	return row, nil
}

// Many reads sources; those that are missing or another tenant's are left out. Key: source.read in any scope.
func (s *Service) Many(ctx context.Context, wanted []ids.ID) (map[ids.ID]*db.ArtifactSource, error) {
	var found []*db.ArtifactSource
	actor, err := s.readAs(ctx, tx.Rows(&found, rows.ArtifactSource, `SELECT `+rows.ArtifactSourceColumns+`
		FROM artifact_source WHERE id = ANY ($1)`,
		wanted))
	if err != nil {
		return nil, err
	}
	shown(actor, found)
	return byID(found, func(row *db.ArtifactSource) ids.ID { return row.ID }), nil
}

// KeysOf reads the keys of sources, newest first, revoked and ended ones among them; at most 50 each. Key: source.read
// in any scope.
func (s *Service) KeysOf(ctx context.Context, sources []ids.ID) (map[ids.ID][]*db.SignerKey, error) {
	var found []*db.SignerKey
	err := s.read(ctx, tx.Rows(&found, rows.SignerKey, `SELECT `+rows.SignerKeyColumns+`
		FROM signer_key WHERE source_id = ANY ($1)
		ORDER BY created_at DESC, id DESC LIMIT $2`, sources, len(sources)*origin.MaxKeys))
	if err != nil {
		return nil, err
	}
	out := make(map[ids.ID][]*db.SignerKey, len(sources))
	for _, row := range found {
		out[row.SourceID] = append(out[row.SourceID], row)
	}
	return out, nil
}

// Keys reads keys; those that are missing or of another tenant's source are left out. Key: source.read in any scope, or
// artifact.read, since a caller that reads an artifact reads who has signed it.
func (s *Service) Keys(ctx context.Context, wanted []ids.ID) (map[ids.ID]*db.SignerKey, error) {
	var found []*db.SignerKey
	query := tx.Rows(&found, rows.SignerKey, `SELECT `+rows.SignerKeyColumns+`
		FROM signer_key WHERE id = ANY ($1)`, wanted)
	if err := s.read(ctx, query, authz.ArtifactRead); err != nil {
		return nil, err
	}
	return byID(found, func(row *db.SignerKey) ids.ID { return row.ID }), nil
}

func byID[T any](found []*T, id func(*T) ids.ID) map[ids.ID]*T {
	out := make(map[ids.ID]*T, len(found))
	for _, row := range found {
		out[id(row)] = row
	}
	return out
}
