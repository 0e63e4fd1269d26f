package login

import (
	"context"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// fresh is how long a login's copy of the people's authorities counts as current. The platform publishes a new one
// three minutes before it signs with it, so that a login updated since then accepts every certificate.
const fresh = 2 * time.Minute

// maxKept bounds the logins that are remembered; beyond it all are forgotten, and certified again when somebody comes.
const maxKept = 4_096

// Keeper keeps logins certified. It is called whenever a person is about to log in, and remembers which logins it has
// certified just now.
type Keeper struct {
	mu        sync.Mutex
	certified map[string]time.Time
}

// NewKeeper returns a keeper that has certified nothing.
func NewKeeper() *Keeper { return &Keeper{certified: map[string]time.Time{}} }

// Refresh certifies a login again unless that was just now.
func (k *Keeper) Refresh(ctx context.Context, api *adapter.Client, do Do, member adapter.Member) error {
	now := time.Now()
	k.mu.Lock()
	last, known := k.certified[member.ID]
	k.mu.Unlock()
	if known && now.Sub(last) < fresh {
		return nil
	}
	if err := Certify(ctx, api, do, member); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.certified) >= maxKept {
		clear(k.certified)
	}
	k.certified[member.ID] = now
	return nil
}
