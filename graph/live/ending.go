package live

import (
	"context"
	"sync/atomic"

	"github.com/99designs/gqlgen/graphql"
)

// A subscription's resolver can only close its channel, which clients read as a completed subscription. A resolver that
// cuts its caller off states the reason first, and the operation ends with that error.

type endingKey struct{}

// WithEnding returns a context that can hold the reason why an operation ends.
func WithEnding(ctx context.Context) context.Context {
	return context.WithValue(ctx, endingKey{}, new(atomic.Pointer[error]))
}

// EndWith returns the function that a resolver calls with the reason before it closes its channel. The first reason
// counts.
func EndWith(ctx context.Context) func(error) {
	reason, ok := ctx.Value(endingKey{}).(*atomic.Pointer[error])
	if !ok {
		return func(error) {}
	}
	return func(err error) { reason.CompareAndSwap(nil, &err) }
}

// EndingOf returns the response that ends a subscription, and nil where the subscription has completed.
func EndingOf(ctx context.Context) *graphql.Response {
	reason, ok := ctx.Value(endingKey{}).(*atomic.Pointer[error])
	if !ok || reason.Load() == nil {
		return nil
	}
	graphql.AddError(ctx, *reason.Load())
	return &graphql.Response{Errors: graphql.GetErrors(ctx)}
}
