package steps

import (
	"context"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/operation"
	"github.com/gpuaas/app-platform/workers/engine"
)

// quick is how long an operation is kept in hand after its dispatch, when its adapter is one that mostly
// ends them at once.
const quick = 250 * time.Millisecond

// The share of operations that an adapter has ended quickly moves by a part of each newer one's, and
// from a quarter on it is worth to wait.
const (
	habitWeight = 0.05
	habitWorth  = 0.25
	maxHabits   = 1_024 // adapters whose habit is known; beyond, all are forgotten
)

// habits are how adapters have been lately: the share of operations that ended quickly. One that is not
// known is waited for.
type habits struct {
	mu    sync.Mutex
	share map[string]float64
}

func (h *habits) patience(adapter string) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if share, known := h.share[adapter]; known && share < habitWorth {
		return 0
	}
	return quick
}

// learn notes whether an operation ended quickly.
func (h *habits) learn(adapter string, quickly bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	share, known := h.share[adapter]
	if !known {
		share = 1
	}
	if h.share == nil || len(h.share) >= maxHabits {
		h.share = make(map[string]float64)
	}
	h.share[adapter] = share * (1 - habitWeight)
	if quickly {
		h.share[adapter] += habitWeight
	}
}

// linger waits a moment for an adapter that ends its operations at once, before it lets go.
func (w *work) linger(ctx context.Context, c *engine.Context) (engine.Result, error) {
	patience := w.habits.patience(c.Op.AdapterName)
	told, err := c.Linger(ctx, patience)
	if err != nil {
		return engine.Result{}, err
	}
	if status := operation.StoredStatus(c.Op.Operation); told && status != nil && status.State.Terminal() {
		return w.ended(c, status)
	}
	if patience > 0 {
		w.habits.learn(c.Op.AdapterName, false)
	}
	return engine.Wait(w.poll(ctx, c), "", engine.Blame{}), nil
}

// ended is the outcome of the adapter's last word; how soon it came is learnt.
func (w *work) ended(c *engine.Context, status *adapter.Status) (engine.Result, error) {
	var sent dispatched
	if err := c.Evidence("dispatch", &sent); err != nil {
		return engine.Result{}, err
	}
	if c.Now().Sub(sent.At) < quick {
		w.habits.learn(c.Op.AdapterName, true)
	}
	return outcome(c.Op.AdapterName, status), nil
}
