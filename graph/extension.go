package graph

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
)

// Extension gives every response its own loaders: they cache, and a subscription must not answer
// with what was true an event ago.
type Extension struct{ Resolver *Resolver }

// ExtensionName is the extension's name for the executor.
func (Extension) ExtensionName() string { return "Loaders" }

// Validate has nothing to check.
func (Extension) Validate(graphql.ExecutableSchema) error { return nil }

// InterceptOperation gives the operation a place for the reason its subscription ends.
func (Extension) InterceptOperation(ctx context.Context, next graphql.OperationHandler) graphql.ResponseHandler {
	return next(withEnding(ctx))
}

// InterceptResponse runs one response with fresh loaders, and records what it was refused. A query of plain fields is answered without
// the executor. The end of a subscription that was cut off is an error.
func (e Extension) InterceptResponse(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
	ctx = e.Resolver.WithLoaders(ctx)
	if response, ok := e.Resolver.plain().Answer(ctx); ok {
		return e.Resolver.denied(ctx, response)
	}
	if response := next(ctx); response != nil {
		return e.Resolver.denied(ctx, response)
	}
	return endingOf(ctx)
}
