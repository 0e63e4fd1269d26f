package graph

import (
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph/generated/model"
	"github.com/gpuaas/app-platform/service/kit/page"
)

// The pages that fields give when nothing is said, and at most; the SDL says the same.
const (
	standardPage = 50
	shortPage    = 20
	eventPage    = 100
)

// pageInfo is where a page stands.
func pageInfo[T any](p *page.Page[T]) *model.PageInfo {
	info := &model.PageInfo{HasNextPage: p.HasNext, HasPreviousPage: p.HasPrev}
	if n := len(p.Cursors); n > 0 {
		info.StartCursor, info.EndCursor = &p.Cursors[0], &p.Cursors[n-1]
	}
	return info
}

// edges makes a connection's edges from a page's rows.
func edges[T, E any](p *page.Page[T], edge func(cursor string, row T) *E) []*E {
	out := make([]*E, len(p.Rows))
	for i, row := range p.Rows {
		out[i] = edge(p.Cursors[i], row)
	}
	return out
}

// value is what a nullable argument holds, or its zero value.
func value[T any](v *T) T {
	if v == nil {
		var zero T
		return zero
	}
	return *v
}

// auditPage is a page of the audit as the public contract shows it.
func auditPage(p *page.Page[*db.AuditEntry], err error) (*model.AuditEntryConnection, error) {
	if err != nil {
		return nil, err
	}
	return &model.AuditEntryConnection{PageInfo: pageInfo(p), Edges: edges(p, func(cursor string, row *db.AuditEntry) *model.AuditEntryEdge {
		return &model.AuditEntryEdge{Cursor: cursor, Node: row}
	})}, nil
}
