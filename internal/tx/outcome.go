package tx

import (
	"context"

	"github.com/gpuaas/app-platform/domain/fault"
)

type outcomeKey struct{}

// WithOutcome returns ctx with a listener that is called each time the credential of ctx was looked up, with whether it
// is valid. It must not block.
func WithOutcome(ctx context.Context, told func(entered bool)) context.Context {
	return context.WithValue(ctx, outcomeKey{}, told)
}

// tell calls the listener, unless the error states nothing about the credential.
func tell(ctx context.Context, err error) {
	told, ok := ctx.Value(outcomeKey{}).(func(entered bool))
	if ok && (err == nil || fault.Is(err, fault.Unauthenticated)) {
		told(err == nil)
	}
}
