package parts

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/workers/engine"
)

// askedPerSecond bounds how often an adapter is asked for the status of single operations, by all
// worker processes together and however many wait: the more wait, the longer each one's pause.
const askedPerSecond = 20

// Bounds of what is known of how many wait.
const (
	countedFor = 5 * time.Second // a count is used
	maxCounted = 1_024           // adapters whose count is kept; beyond, all are counted anew
)

// crowds are how many operations wait for each adapter, counted now and then.
type crowds struct {
	mu    sync.Mutex
	known map[string]crowd
}

type crowd struct {
	size int
	at   time.Time
}

// poll is how long an operation waits before it asks its adapter.
func (w *Work) poll(ctx context.Context, c *engine.Context) time.Duration {
	return w.Pace.Poll + rand.N(spread(w.Pace.Poll, w.crowd(ctx, c))+1) // #nosec G404 -- jitter
}

// spread bounds the random while that an operation waits beyond the pace; it grows with how many wait,
// so that all that were dispatched at one moment ask one after the other. With pauses of anything up to
// a, a crowd asks at most e/a times its size a second, the peak of the renewal density, and on average
// 2/a times.
func spread(pace time.Duration, crowd int) time.Duration {
	return max(time.Duration(math.E*float64(crowd)/askedPerSecond*float64(time.Second))-pace, pace/5)
}

// crowd is how many operations of the adapter have not ended. When that cannot be told, it is what it
// was.
func (w *Work) crowd(ctx context.Context, c *engine.Context) int {
	name := c.Op.AdapterName
	w.crowds.mu.Lock()
	known := w.crowds.known[name]
	w.crowds.mu.Unlock()
	if c.Now().Sub(known.at) < countedFor {
		return known.size
	}
	err := c.DB().Worker().QueryRow(ctx, `SELECT count(*) FROM operation WHERE adapter_name = $1 AND ended_at IS NULL`, name).Scan(&known.size)
	if err != nil {
		c.Log.Warn("what waits for the adapter could not be counted", "error", err)
	}
	known.at = c.Now()
	w.crowds.mu.Lock()
	defer w.crowds.mu.Unlock()
	if w.crowds.known == nil || len(w.crowds.known) >= maxCounted {
		w.crowds.known = make(map[string]crowd)
	}
	w.crowds.known[name] = known
	return known.size
}
