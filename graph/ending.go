package graph

import (
	"context"
	"sync/atomic"

	"github.com/99designs/gqlgen/graphql"
)

// A subscription's resolver can only close its channel, which reads as an end in good order. One
// that cuts its caller off says why first, and the extension ends the operation with that error.

type endingKey struct{}

// withEnding gives an operation a place for the reason of its end.
func withEnding(ctx context.Context) context.Context {
	return context.WithValue(ctx, endingKey{}, new(atomic.Pointer[error]))
}

// endWith is what a resolver calls with the reason, before it closes its channel; the first counts.
func endWith(ctx context.Context) func(error) {
	place, ok := ctx.Value(endingKey{}).(*atomic.Pointer[error])
	if !ok {
		return func(error) {}
	}
	return func(err error) { place.CompareAndSwap(nil, &err) }
}

// endingOf is the response that ends a subscription; nil for an end in good order.
func endingOf(ctx context.Context) *graphql.Response {
	place, ok := ctx.Value(endingKey{}).(*atomic.Pointer[error])
	if !ok || place.Load() == nil {
		return nil
	}
	graphql.AddError(ctx, *place.Load())
	return &graphql.Response{Errors: graphql.GetErrors(ctx)}
}
