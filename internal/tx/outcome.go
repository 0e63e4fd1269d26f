package tx

import (
	"context"

	"github.com/gpuaas/app-platform/domain/fault"
)

type outcomeKey struct{}

// WithOutcome is ctx with a listener that is told, each time the credential of ctx was looked up,
// whether it is a right one. It must not block.
func WithOutcome(ctx context.Context, told func(entered bool)) context.Context {
	return context.WithValue(ctx, outcomeKey{}, told)
}

// tell passes the outcome on; an error that says nothing of the credential is none.
func tell(ctx context.Context, err error) {
	told, ok := ctx.Value(outcomeKey{}).(func(entered bool))
	if ok && (err == nil || fault.Is(err, fault.Unauthenticated)) {
		told(err == nil)
	}
}
