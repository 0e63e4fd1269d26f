package live

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// progressPoll is how often a watched operation is read without a wake-up, which is only a hint.
const progressPoll = 10 * time.Second

// Progress watches operations. A watched operation is read once for each change, however many watch it.
type Progress struct {
	DB       *tx.DB
	Hub      *event.Hub
	Sentinel *Sentinel
	Log      *slog.Logger

	mu      sync.Mutex
	watched map[ids.ID]*watchedOperation
}

// watchedOperation is one operation with its watchers.
type watchedOperation struct {
	watchers map[chan reading]struct{}
	again    chan struct{} // requests a reading without a known change
	stop     context.CancelFunc
}

// reading is the operation as it was at some moment after the read began.
type reading struct {
	view  *operation.View
	begun time.Time
}

// Watch sends the operation as it is, then as it is after each change, and closes the channel after the operation's
// end. A slow watcher misses states in between, never the newest. end is called with the reason when the caller of ctx
// loses the right. Watch requires operation.read.
func (p *Progress) Watch(ctx context.Context, id ids.ID, end func(error)) (<-chan *operation.View, error) {
	w, newest := p.join(id)
	current, err := operation.Get(ctx, p.DB, id)
	since := time.Now()
	if err != nil {
		p.leave(id, newest)
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	forget := p.Sentinel.WatchProved(ctx, "operation "+string(id), tx.CallerSubject(), func(ctx context.Context) error {
		_, err := operation.Get(ctx, p.DB, id)
		return err
	}, func(err error) { end(err); cancel() })
	out := make(chan *operation.View, 1)
	go func() {
		defer cancel()
		defer close(out)
		defer p.leave(id, newest)
		defer forget()
		w.follow(ctx, current, since, newest, out)
	}()
	return out, nil
}

// follow passes on the readings that differ from the last one that was sent, until the operation has ended. A reading
// that began before the first one was complete may be the older of the two: the operation is read again, so that no
// watcher receives an earlier state after a later one.
func (w *watchedOperation) follow(
	ctx context.Context, current *operation.View, since time.Time, newest <-chan reading, out chan<- *operation.View,
) {
	for {
		select {
		case out <- current:
		case <-ctx.Done():
			return
		}
		for sent := current; !sent.Differs(current); {
			if sent.EndedAt != nil {
				return
			}
			select {
			case next := <-newest:
				if next.begun.Before(since) {
					w.readAgain()
				} else {
					current = next.view
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

// readAgain requests a reading.
func (w *watchedOperation) readAgain() {
	select {
	case w.again <- struct{}{}:
	default: // one is requested already
	}
}

// join registers a watcher before it reads, so that no change falls in between.
func (p *Progress) join(id ids.ID) (*watchedOperation, chan reading) {
	newest := make(chan reading, 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.watched == nil {
		p.watched = make(map[ids.ID]*watchedOperation)
	}
	w := p.watched[id]
	if w == nil {
		ctx, stop := context.WithCancel(context.Background())
		w = &watchedOperation{watchers: make(map[chan reading]struct{}), again: make(chan struct{}, 1), stop: stop}
		p.watched[id] = w
		go p.run(ctx, id, w, p.Hub.Wait(event.OperationTopic(id)))
	}
	w.watchers[newest] = struct{}{}
	return w, newest
}

// leave removes a watcher, and stops the reads of an operation without watchers.
func (p *Progress) leave(id ids.ID, newest chan reading) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.watched[id]
	delete(w.watchers, newest)
	if len(w.watchers) == 0 {
		w.stop()
		delete(p.watched, id)
	}
}

// run reads the operation at each wake-up for all of its watchers. Each of them was authorised, and the sentinel
// rechecks them.
func (p *Progress) run(ctx context.Context, id ids.ID, w *watchedOperation, waiter *event.Waiter) {
	defer waiter.Close()
	poll := time.NewTicker(progressPoll)
	defer poll.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-waiter.C:
		case <-w.again:
		case <-poll.C:
		}
		begun := time.Now()
		view, err := operation.Latest(ctx, p.DB, id)
		if err != nil {
			if ctx.Err() == nil {
				p.Log.Warn("a watched operation could not be read; it is tried again", "operation_id", id, "error", err)
			}
			continue
		}
		p.send(w, reading{view: view, begun: begun})
	}
}

// send gives every watcher of w the newest reading, in place of one that it has not taken yet. Watchers that joined
// after w stopped belong to a newer goroutine and are not sent to.
func (p *Progress) send(w *watchedOperation, now reading) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for newest := range w.watchers {
		select {
		case <-newest:
		default:
		}
		newest <- now // only this goroutine sends, so there is space
	}
}
