package read

import (
	"context"

	"github.com/gpuaas/app-platform/graph/generated/model"
	"github.com/gpuaas/app-platform/service/kit/page"
)

// The sizes of pages that fields give where `first` is missing. The SDL states the same numbers.
const (
	StandardPage = 50
	ShortPage    = 20
	EventPage    = 100
)

// connection is every generated type of a page of E.
type connection[E any] interface {
	~struct {
		Edges    []*E            `json:"edges"`
		PageInfo *model.PageInfo `json:"pageInfo"`
	}
}

// edge is every generated type of a row of a page.
type edge[T any] interface {
	~struct {
		Cursor string `json:"cursor"`
		Node   T      `json:"node"`
	}
}

// Connection returns a page of rows as the generated type C, or the error with which the page was read.
func Connection[C connection[E], E edge[T], T any](p *page.Page[T], err error) (*C, error) {
	if err != nil {
		return nil, err
	}
	edges := make([]*E, len(p.Rows))
	for i, row := range p.Rows {
		edges[i] = &E{Cursor: p.Cursors[i], Node: row}
	}
	return &C{Edges: edges, PageInfo: pageInfo(p)}, nil
}

// List returns a page of a list whose rows depend on the caller alone: first rows, or as many as is standard, after a
// cursor.
func List[C connection[E], E edge[T], T any](ctx context.Context, first *int, after *string, standard int,
	list func(context.Context, page.Args) (*page.Page[T], error)) (*C, error) {
	args, err := page.Of(first, after, standard, page.Max)
	if err != nil {
		return nil, err
	}
	return Connection[C](list(ctx, args))
}

// ListOf is List for what takes one argument more, such as whose list it is, with the standard page.
func ListOf[C connection[E], E edge[T], T, Of any](ctx context.Context, of Of, first *int, after *string,
	list func(context.Context, Of, page.Args) (*page.Page[T], error)) (*C, error) {
	return List[C](ctx, first, after, StandardPage,
		func(ctx context.Context, args page.Args) (*page.Page[T], error) { return list(ctx, of, args) })
}

// pageInfo returns where a page begins and ends, and whether there is more on either side.
func pageInfo[T any](p *page.Page[T]) *model.PageInfo {
	info := &model.PageInfo{HasNextPage: p.HasNext, HasPreviousPage: p.HasPrev}
	if n := len(p.Cursors); n > 0 {
		info.StartCursor, info.EndCursor = &p.Cursors[0], &p.Cursors[n-1]
	}
	return info
}
