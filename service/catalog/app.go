package catalog

import (
	"context"
	"strings"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/kit/rows"
)

// App reads an app by its short name. Key: <family>.catalog.read in any scope.
func (s *Service) App(ctx context.Context, slug string) (*db.App, error) {
	return s.oneApp(ctx, "slug = $1", slug)
}

// AppByID reads an app by its id. Key: <family>.catalog.read in any scope.
func (s *Service) AppByID(ctx context.Context, id ids.ID) (*db.App, error) {
	return s.oneApp(ctx, "id = $1", id)
}

// maxSearch bounds what is searched for, in bytes.
const maxSearch = 100

// likeEscapes escapes a text so that a LIKE pattern matches it literally.
var likeEscapes = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

// Apps lists the catalog by short name. search matches part of a short name or name, in any case; system selects the
// platform's own apps or the others, nil both. Key: <family>.catalog.read in any scope; other families are left out.
func (s *Service) Apps(ctx context.Context, search string, system *bool, args page.Args) (*page.Page[*db.App], error) {
	const list = "apps"
	if len(search) > maxSearch {
		return nil, fault.New(fault.InvalidArgument, "search may have at most %d bytes", maxSearch).At("search")
	}
	var after string
	if err := args.Decode(list, &after); err != nil {
		return nil, err
	}
	actor, err := s.DB.Read(ctx)
	if err != nil {
		return nil, err
	}
	families, err := visible(actor)
	if err != nil {
		return nil, err
	}
	var found []*db.App
	_, err = s.DB.Read(ctx, tx.Rows(&found, rows.App, `SELECT `+rows.AppColumns+` FROM app
		WHERE slug > $1 AND permission_family = ANY ($2) AND (slug ILIKE $3 OR display_name ILIKE $3) AND ($5::boolean IS NULL OR system = $5)
			ORDER BY slug LIMIT $4`, after, families, "%"+likeEscapes.Replace(search)+"%", args.First+1, system))
	if err != nil {
		return nil, err
	}
	for _, app := range found {
		conceal(actor, app)
	}
	return page.Cut(args, found, func(row *db.App) string { return page.Cursor(list, row.Slug) }), nil
}
