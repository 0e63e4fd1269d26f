package patience

import (
	"sync"
	"time"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
)

// Quick is how long an operation is kept in hand after its dispatch when its adapter mostly ends such at once. It is
// long for a busy machine: waiting costs next to nothing, letting go and claiming again does.
const Quick = time.Second

// The share of one kind's operations that an adapter has ended quickly moves by a part of each newer one's. From a
// quarter on, waiting is worth it.
const (
	habitWeight = 0.05
	habitWorth  = 0.25
	maxHabits   = 1_024 // adapters' kinds whose habit is known; beyond, all are forgotten
)

// Habits are how adapters have been lately: the share of operations that ended quickly. The zero value knows none. Safe
// for concurrent use.
type Habits struct {
	mu    sync.Mutex
	share map[habit]float64
}

// habit is an adapter's with one kind of operation.
type habit struct {
	adapter string
	kind    lifecycle.OperationKind
}

// Of returns how long to wait for an operation's end before letting go: Quick, or 0 for one that mostly takes longer.
// One whose habit is not known is waited for.
func (h *Habits) Of(op *db.Operation) time.Duration { return h.of(habit{op.AdapterName, op.Kind}) }

// Learn records whether an operation ended quickly.
func (h *Habits) Learn(op *db.Operation, quickly bool) {
	h.learn(habit{op.AdapterName, op.Kind}, quickly)
}

func (h *Habits) of(of habit) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if share, known := h.share[of]; known && share < habitWorth {
		return 0
	}
	return Quick
}

func (h *Habits) learn(of habit, quickly bool) {
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
