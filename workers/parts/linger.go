package parts

import (
	"context"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/workers/engine"
)

// quick is how long an operation is kept in hand after its dispatch, when its adapter mostly ends such
// at once. It is long for a busy machine; to wait costs next to nothing, to let go and claim again does.
const quick = time.Second

// The share of one kind's operations that an adapter has ended quickly moves by a part of each newer
// one's, and from a quarter on it is worth to wait.
const (
	habitWeight = 0.05
	habitWorth  = 0.25
	maxHabits   = 1_024 // adapters' kinds whose habit is known; beyond, all are forgotten
)

// habits are how adapters have been lately: the share of operations that ended quickly. One that is not
// known is waited for.
type habits struct {
	mu    sync.Mutex
	share map[habit]float64
}

// habit is an adapter's with one kind of operation.
type habit struct {
	adapter string
	kind    lifecycle.OperationKind
}

func habitOf(op *db.Operation) habit { return habit{op.AdapterName, op.Kind} }

func (h *habits) patience(of habit) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if share, known := h.share[of]; known && share < habitWorth {
		return 0
	}
	return quick
}

// learn notes whether an operation ended quickly.
func (h *habits) learn(of habit, quickly bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	share, known := h.share[of]
	if !known {
		share = 1
	}
	if h.share == nil || len(h.share) >= maxHabits {
		h.share = make(map[habit]float64)
	}
	h.share[of] = share * (1 - habitWeight)
	if quickly {
		h.share[of] += habitWeight
	}
}

// linger waits a moment for an adapter that ends its operations at once, before it lets go.
func (w *Work) linger(ctx context.Context, c *engine.Context) (engine.Result, error) {
	patience := w.habits.patience(habitOf(c.Op.Operation))
	told, err := c.WaitInPlace(ctx, patience)
	if err != nil {
		return engine.Result{}, err
	}
	if status := operation.StoredStatus(c.Op.Operation); told && status != nil && status.State.Terminal() {
		return w.ended(c, status)
	}
	if patience > 0 {
		w.habits.learn(habitOf(c.Op.Operation), false)
	}
	return engine.Wait(w.poll(ctx, c), "", engine.FailureCause{}), nil
}

// ended is the outcome of the adapter's last word; how soon it came is learnt.
func (w *Work) ended(c *engine.Context, status *adapter.Status) (engine.Result, error) {
	var sent dispatched
	if err := c.Evidence("dispatch", &sent); err != nil {
		return engine.Result{}, err
	}
	if c.Now().Sub(sent.At) < quick {
		w.habits.learn(habitOf(c.Op.Operation), true)
	}
	return outcome(c.Op.AdapterName, status), nil
}
