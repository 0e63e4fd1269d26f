package artifact

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
)

// The bounds of a process's readings.
const (
	maxErrands      = 32              // under way, and done and not fetched yet
	maxErrandsEach  = 8               // of them for one owner
	errandKept      = 2 * time.Minute // after its end, for whoever asks again
	answerMargin    = 5 * time.Second // of a request's time, for what follows the reading
	errandInTheWork = "the artifact is still being read, %d bytes so far: repeat the call to continue waiting"
)

// desk keeps readings apart from the requests that want them, as a large artifact takes longer than a request may: a
// caller that has waited in vain repeats the call, and waits on for the same reading. The zero value is ready.
type desk struct {
	lock    sync.Mutex
	running map[errandKey]*errand
}

// errandKey is what a reading is for, and for whom: no caller waits for another owner's reading.
type errandKey struct {
	Verb, Ref, Digest           string
	Tenant, Project, Source, ID ids.ID
}

// errand is a reading.
type errand struct {
	done  chan struct{}
	bytes atomic.Int64 // read so far
	out   *found
	err   error
}

// run returns what the reading found, of the one that is under way or of a new one. LIMIT_EXCEEDED when too many are;
// UNAVAILABLE when it takes longer than the request may.
func (d *desk) run(ctx context.Context, key errandKey,
	read func(context.Context, *atomic.Int64) (*found, error)) (*found, error) {
	e, err := d.take(ctx, key, read)
	if err != nil {
		return nil, err
	}
	waiting, cancel := withMargin(ctx)
	defer cancel()
	select {
	case <-e.done:
		d.drop(key, e)
		if e.err != nil {
			return nil, e.err
		}
		own := *e.out // several may have waited, and each goes on with what it found
		return &own, nil
	case <-waiting.Done():
		return nil, fault.New(fault.Unavailable, errandInTheWork, e.bytes.Load()).Because(waiting.Err())
	}
}

// withMargin ends before the request does.
func withMargin(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, deadline.Add(-min(answerMargin, time.Until(deadline)/4)))
}

func (d *desk) take(ctx context.Context, key errandKey,
	read func(context.Context, *atomic.Int64) (*found, error)) (*errand, error) {
	d.lock.Lock()
	defer d.lock.Unlock()
	if e, ok := d.running[key]; ok {
		return e, nil
	}
	own := 0
	for other := range d.running {
		if other.Tenant == key.Tenant {
			own++
		}
	}
	if len(d.running) >= maxErrands || own >= maxErrandsEach {
		return nil, fault.New(fault.LimitExceeded,
			"too many artifacts are being read at once: at most %d for one owner", maxErrandsEach).Retry(true)
	}
	if d.running == nil {
		d.running = make(map[errandKey]*errand)
	}
	e := &errand{done: make(chan struct{})}
	d.running[key] = e
	apart, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), readTimeout, errTooLong)
	go func() {
		defer cancel()
		defer close(e.done)
		defer time.AfterFunc(errandKept, func() { d.drop(key, e) })
		defer func() {
			if cause := recover(); cause != nil { // it has no request that would catch it
				e.err = fmt.Errorf("read an artifact: panic: %v", cause)
			}
		}()
		e.out, e.err = read(apart, &e.bytes)
	}()
	return e, nil
}

// drop forgets a reading whose result a caller received, or that no caller fetched in time.
func (d *desk) drop(key errandKey, e *errand) {
	d.lock.Lock()
	defer d.lock.Unlock()
	if d.running[key] == e {
		delete(d.running, key)
	}
}
