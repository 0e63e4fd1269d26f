package operation

import (
	"context"
	"sync"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// Turns keeps operations and actions of one instance from changing slurm.conf, or from stopping slurmctld, at the same
// time. It also knows
// which members are being brought up: their nodes do not answer yet, and must not count as
// forgotten.
type Turns struct {
	mu      sync.Mutex
	seats   map[string]chan struct{} // by instance; holds one token while taken
	joining map[string]int           // by member
}

// NewTurns returns turns that no operation has taken.
func NewTurns() *Turns { return &Turns{seats: map[string]chan struct{}{}, joining: map[string]int{}} }

// Lock waits for the instance's turn; unlock ends it. The channel stays for the life of the
// program: an empty one for each instance ever touched.
func (t *Turns) Lock(ctx context.Context, instance string) (unlock func(), err error) {
	t.mu.Lock()
	seat, ok := t.seats[instance]
	if !ok {
		seat = make(chan struct{}, 1)
		t.seats[instance] = seat
	}
	t.mu.Unlock()
	select {
	case seat <- struct{}{}:
		return func() { <-seat }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// markJoining marks members as being brought up until done is called.
func (t *Turns) markJoining(members []adapter.Member) (done func()) {
	change := func(by int) {
		t.mu.Lock()
		defer t.mu.Unlock()
		for _, member := range members {
			if t.joining[member.ID] += by; t.joining[member.ID] == 0 {
				delete(t.joining, member.ID)
			}
		}
	}
	change(1)
	return func() { change(-1) }
}

func (t *Turns) isJoining(memberID string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.joining[memberID] > 0
}
