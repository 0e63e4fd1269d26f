package gap

import (
	"context"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/kit/scope"
)

// Filter is which entries; what is nil or empty does not narrow.
type Filter struct {
	AppSlug   *string
	ProjectID *ids.ID
	States    []lifecycle.GapState
	Kinds     []lifecycle.GapKind
}

// List reads entries, newest first. Key: gap.read on the publisher of the app, or on the publishing project, that the
// filter names; without either on the platform. NOT_FOUND when one of them is missing or hidden.
func (s *Service) List(ctx context.Context, filter *Filter, args page.Args) (*page.Page[*Gap], error) {
	if filter == nil {
		filter = &Filter{}
	}
	const list = "gaps"
	after := ids.ID("zz") // beyond every id
	if err := args.Decode(list, &after); err != nil {
		return nil, err
	}
	var found []*Gap
	var app *App
	at := scope.Scope{ProjectID: filter.ProjectID}
	actor, err := s.DB.Read(ctx, at.With(tx.Row(&app, scanApp, appSQL, filter.AppSlug),
		tx.Rows(&found, scan, `SELECT `+columns+` FROM gap WHERE id < $1 AND ($2::text IS NULL OR app_slug = $2)
			AND ($3::text IS NULL OR project_id = $3) AND (cardinality($4::text[]) = 0 OR state = ANY ($4))
			AND (cardinality($5::text[]) = 0 OR kind = ANY ($5)) ORDER BY id DESC LIMIT $6`, after, filter.AppSlug,
			filter.ProjectID, words(filter.States), words(filter.Kinds), args.First+1))...)
	if err != nil {
		return nil, err
	}
	if err := filter.require(actor, app, &at); err != nil {
		return nil, err
	}
	return page.Cut(args, found, func(g *Gap) string { return page.Cursor(list, g.ID) }), nil
}

// require refuses a caller without gap.read where the filter looks.
func (f *Filter) require(actor *authz.Actor, app *App, at *scope.Scope) error {
	if f.ProjectID != nil {
		if err := at.Require(actor, authz.GapRead); err != nil {
			return err
		}
	}
	switch {
	case f.AppSlug != nil && app == nil:
		return fault.NoSuch()
	case f.AppSlug != nil:
		return authz.RequireOn(actor, authz.GapRead, app.Object())
	case f.ProjectID == nil:
		return authz.RequireOn(actor, authz.GapRead, authz.Object{})
	}
	return nil
}

// words are values as PostgreSQL takes an array; never nil, which would be NULL.
func words[T ~string](values []T) []string {
	out := make([]string, len(values))
	for i, value := range values {
		out[i] = string(value)
	}
	return out
}
