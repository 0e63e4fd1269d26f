package graph

import (
	"context"

	"github.com/99designs/gqlgen/graphql"

	"github.com/gpuaas/app-platform/graph/denial"
	"github.com/gpuaas/app-platform/graph/live"
	"github.com/gpuaas/app-platform/graph/read"
)

// Extension gives every response its own loaders: they cache, and a subscription must not answer with what was true one
// event ago.
type Extension struct{ Resolver *Resolver }

// ExtensionName returns the extension's name for the executor.
func (Extension) ExtensionName() string { return "Loaders" }

// Validate returns nil: there is nothing to check.
func (Extension) Validate(graphql.ExecutableSchema) error { return nil }

// InterceptOperation lets the operation hold the reason why its subscription ends.
func (Extension) InterceptOperation(ctx context.Context, next graphql.OperationHandler) graphql.ResponseHandler {
	return next(live.WithEnding(ctx))
}

// InterceptResponse runs one response with fresh loaders, and records its refusals. A query of plain fields is answered
// without the executor. A subscription that was cut off ends with an error.
func (e Extension) InterceptResponse(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
	ctx = e.Resolver.WithLoaders(ctx)
	if response, ok := e.Resolver.Answers().Answer(ctx); ok {
		return response // without errors
	}
	if response := next(ctx); response != nil {
		return denial.Record(ctx, e.Resolver.DB, response)
	}
	return live.EndingOf(ctx)
}

// WithLoaders returns a context with loaders for one response.
func (r *Resolver) WithLoaders(ctx context.Context) context.Context {
	return read.With(ctx, read.Services{
		DB: r.DB, Instances: r.Instances, Nodes: r.Nodes, Allocations: r.Allocations, Catalog: r.Catalog,
		Trust:        r.Trust,
		Entitlements: r.Entitlements,
		Artifacts:    r.Artifacts, ArtifactSources: r.ArtifactSources, Identity: r.Identity, Shares: r.Shares,
		Orphans: r.Orphans, Blockers: r.Blockers, Volumes: r.Storage, Wait: r.BatchWait,
	})
}
