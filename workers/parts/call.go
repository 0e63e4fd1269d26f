package parts

import (
	"context"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/adapterclient"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/workers/engine"
)

// call calls an adapter for a step. While the adapter is away it returns the error of the last call instead, and a call
// that takes long gives the step's slot back.
func call[T any](ctx context.Context, w *Work, c *engine.Context, target adapterclient.Target,
	do func(ctx context.Context) (T, error)) (answer T, err error) {
	pass, err := w.Breakers.Enter(target.Name)
	if err != nil {
		return answer, err
	}
	done := c.Calling()
	defer done()
	answer, err = do(ctx)
	refused, ok := adapterclient.As(err)
	switch {
	case ctx.Err() != nil || err != nil && !ok: // it was cut, or never left this process
		pass.Abandoned()
	case ok && refused.Kind == adapterclient.Unavailable && refused.Status == 0:
		pass.Silent(err)
	default:
		pass.Answered()
	}
	return answer, err
}

// status asks the adapter for the operation's status.
func (w *Work) status(ctx context.Context, c *engine.Context, target adapterclient.Target) (adapter.Status, error) {
	return call(ctx, w, c, target, func(ctx context.Context) (adapter.Status, error) {
		return w.Client.Status(ctx, target, string(c.Op.ID), c.Trace())
	})
}

// stop asks the adapter to stop an operation.
func (w *Work) stop(ctx context.Context, c *engine.Context, target adapterclient.Target, id ids.ID, attempt int,
) (adapter.CancelResult, error) {
	return call(ctx, w, c, target, func(ctx context.Context) (adapter.CancelResult, error) {
		return w.Client.Cancel(ctx, target, string(id), attempt, c.Trace())
	})
}
