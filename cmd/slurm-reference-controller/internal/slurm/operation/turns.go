package operation

import (
	"context"
	"sync"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// desk keeps operations of one instance from changing slurm.conf at once, and knows which members
// are being brought up: their nodes do not answer yet, and must not be taken for forgotten ones.
type desk struct {
	mu      sync.Mutex
	seats   map[string]chan struct{} // by instance; holds one token while taken
	joining map[string]int           // by member
}

func newDesk() *desk { return &desk{seats: map[string]chan struct{}{}, joining: map[string]int{}} }

// sit waits for the instance's seat; stand gives it back. A seat stays for the life of the program:
// an empty channel for each instance ever touched.
func (d *desk) sit(ctx context.Context, instance string) (stand func(), err error) {
	d.mu.Lock()
	seat, ok := d.seats[instance]
	if !ok {
		seat = make(chan struct{}, 1)
		d.seats[instance] = seat
	}
	d.mu.Unlock()
	select {
	case seat <- struct{}{}:
		return func() { <-seat }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// bring marks members as being brought up until the answered function is called.
func (d *desk) bring(members []adapter.Member) (done func()) {
	change := func(by int) {
		d.mu.Lock()
		defer d.mu.Unlock()
		for _, member := range members {
			if d.joining[member.ID] += by; d.joining[member.ID] == 0 {
				delete(d.joining, member.ID)
			}
		}
	}
	change(1)
	return func() { change(-1) }
}

func (d *desk) brings(memberID string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.joining[memberID] > 0
}
