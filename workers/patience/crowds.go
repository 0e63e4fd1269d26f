package patience

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/workers/engine"
)

// askedPerSecond bounds the requests to an adapter for the status of single operations, by all
// worker processes together and however many wait: the more wait, the longer each one's pause.
const askedPerSecond = 20

// Bounds of what is known of how many wait.
const (
	countedFor = 5 * time.Second // a count is used
	maxCounted = 1_024           // adapters whose count is kept; beyond, all are counted again
)

// Crowds are how many operations wait for each adapter, counted every few seconds. The zero value has counted none.
// Safe for concurrent use.
type Crowds struct {
	mu    sync.Mutex
	known map[string]crowd
}

type crowd struct {
	size int
	at   time.Time
}

// Pause returns how long an operation waits before it asks its adapter: pace, and a random while that grows with how
// many wait for the same adapter.
func (k *Crowds) Pause(ctx context.Context, c *engine.Context, pace time.Duration) time.Duration {
	return pace + rand.N(spread(pace, k.of(ctx, c))+1) // #nosec G404 -- jitter
}

// spread bounds the random while that an operation waits beyond the pace; it grows with how many wait,
// so that all that were dispatched at one moment ask one after the other. With pauses of anything up to
// a, a crowd asks at most e/a times its size a second, the peak of the renewal density, and on average
// 2/a times.
func spread(pace time.Duration, crowd int) time.Duration {
	return max(time.Duration(math.E*float64(crowd)/askedPerSecond*float64(time.Second))-pace, pace/5)
}

// of returns how many operations of the adapter have not ended. When they cannot be counted, it returns the last count.
func (k *Crowds) of(ctx context.Context, c *engine.Context) int {
	name := c.Op.AdapterName
	k.mu.Lock()
	known := k.known[name]
	k.mu.Unlock()
	if c.Now().Sub(known.at) < countedFor {
		return known.size
	}
	err := c.DB().Worker().QueryRow(ctx, `SELECT count(*) FROM operation WHERE adapter_name = $1 AND ended_at IS NULL`,
		name).Scan(&known.size)
	if err != nil {
		c.Log.Warn("the operations that wait for the adapter could not be counted", "error", err)
	}
	known.at = c.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known == nil || len(k.known) >= maxCounted {
		k.known = make(map[string]crowd)
	}
	k.known[name] = known
	return known.size
}
