package client

import (
	"iter"

	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// pageSize is how many nodes All requests at a time: the platform's maximum.
const pageSize = 100

// All reads a connection page by page, up to limit nodes, and ends with the first error. fetch gets the size of the
// next page and the cursor to read on after. The caller names the node type; the rest is inferred:
//
//	for app, err := range client.All[gql.App](1000, func(first int, after string) (*gql.AppPage, error) {
//		answer, err := gql.ListApps(ctx, c, "", first, after)
//		if err != nil {
//			return nil, err
//		}
//		return &answer.Apps, nil
//	}) { … }
func All[N, E any, PE interface {
	*E
	GetNode() N
}, P interface {
	GetEdges() []E
	GetPageInfo() gql.PageInfo
}](limit int, fetch func(first int, after string) (P, error)) iter.Seq2[N, error] {
	return func(yield func(N, error) bool) {
		after, left := "", limit
		for left > 0 {
			page, err := fetch(min(left, pageSize), after)
			if err != nil {
				var none N
				yield(none, err)
				return
			}
			edges := page.GetEdges()
			for i := range edges {
				if !yield(PE(&edges[i]).GetNode(), nil) {
					return
				}
			}
			left -= len(edges)
			info := page.GetPageInfo()
			if !info.HasNextPage || info.EndCursor == nil || *info.EndCursor == after {
				return
			}
			after = *info.EndCursor
		}
	}
}
