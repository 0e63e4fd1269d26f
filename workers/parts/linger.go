package parts

import (
	"context"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/workers/engine"
	"github.com/gpuaas/app-platform/workers/patience"
)

// linger waits a moment for an adapter that ends its operations at once, before it lets go.
func (w *Work) linger(ctx context.Context, c *engine.Context) (engine.Result, error) {
	pause := w.habits.Of(c.Op.Operation)
	ended, err := c.WaitInPlace(ctx, pause)
	if err != nil {
		return engine.Result{}, err
	}
	if status := operation.StoredStatus(c.Op.Operation); ended && status != nil && status.State.Terminal() {
		return w.ended(c, status)
	}
	if pause > 0 {
		w.habits.Learn(c.Op.Operation, false)
	}
	return engine.Wait(w.crowds.Pause(ctx, c, w.Pace.Poll), "", engine.FailureCause{}), nil
}

// ended returns the outcome of the adapter's last report; how soon it came is learnt.
func (w *Work) ended(c *engine.Context, status *adapter.Status) (engine.Result, error) {
	var sent dispatched
	if err := c.Evidence("dispatch", &sent); err != nil {
		return engine.Result{}, err
	}
	if c.Now().Sub(sent.At) < patience.Quick {
		w.habits.Learn(c.Op.Operation, true)
	}
	return outcome(c.Op.AdapterName, status), nil
}
