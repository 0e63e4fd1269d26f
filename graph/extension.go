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

// InterceptResponse runs one response with fresh loaders.
func (e Extension) InterceptResponse(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
	return next(e.Resolver.WithLoaders(ctx))
}
