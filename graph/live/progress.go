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

// progressLook is how often a watched operation is looked at without a wake-up, which is a hint.
const progressLook = 10 * time.Second

// Progress watches operations: each that anybody watches is read once a change, however many watch.
type Progress struct {
	DB       *tx.DB
	Hub      *event.Hub
	Sentinel *Sentinel
	Log      *slog.Logger

	mu      sync.Mutex
	watched map[ids.ID]*watchedOperation
}

// watchedOperation is one operation with those who watch it.
type watchedOperation struct {
	watchers map[chan reading]struct{}
	again    chan struct{} // asks for a reading though nothing is known to have changed
	stop     context.CancelFunc
}

// reading is the operation as it was at some moment after it was asked for.
type reading struct {
	view  *operation.View
	asked time.Time
}

// Watch sends the operation as it is, then as it is after each change, and closes after its end. A
// watcher that is slow misses what came in between, never the newest. end is called with the reason
// when the caller of ctx may no more. It asks for operation.read.
func (p *Progress) Watch(ctx context.Context, id ids.ID, end func(error)) (<-chan *operation.View, error) {
	w, newest := p.join(id)
	current, err := operation.Get(ctx, p.DB, id)
	since := time.Now()
	if err != nil {
		p.leave(id, newest)
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	forget := p.Sentinel.Watch(ctx, "operation "+string(id), func(ctx context.Context) error {
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

// follow passes on what differs from what was sent, until the operation has ended. A reading that was asked for before
// the first one had come may be the older of the two: it is made again, so that nobody is told of an earlier state.
func (w *watchedOperation) follow(ctx context.Context, current *operation.View, since time.Time, newest <-chan reading, out chan<- *operation.View) {
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
				if next.asked.Before(since) {
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

func (w *watchedOperation) readAgain() {
	select {
	case w.again <- struct{}{}:
	default: // it is asked for already
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

// run reads the operation at each wake-up for all who watch it; each of them was authorised, and is
// asked about again by the sentinel.
func (p *Progress) run(ctx context.Context, id ids.ID, w *watchedOperation, waiter *event.Waiter) {
	defer waiter.Close()
	look := time.NewTicker(progressLook)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-waiter.C:
		case <-w.again:
		case <-look.C:
		}
		asked := time.Now()
		view, err := operation.Latest(ctx, p.DB, id)
		if err != nil {
			if ctx.Err() == nil {
				p.Log.Warn("a watched operation could not be read; it is tried again", "operation", id, "error", err)
			}
			continue
		}
		p.tell(w, reading{view: view, asked: asked})
	}
}

// tell gives every watcher of w the newest view, in place of one it has not taken yet. Those who came
// after w had ended have another goroutine, whose word is newer.
func (p *Progress) tell(w *watchedOperation, now reading) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for newest := range w.watchers {
		select {
		case <-newest:
		default:
		}
		newest <- now // this goroutine alone sends, so there is room
	}
}
