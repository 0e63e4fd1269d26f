package node

import (
	"context"
	"slices"
	"time"

	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

const (
	// maxWait bounds how long an agent's call waits for a change, in seconds.
	maxWait = 20
	// maxVersion is the longest version that a caller may name, in bytes.
	maxVersion = 64
)

// follow reads a view, its version, and the topics that are woken when it may change. While the version is the known
// one, it waits for another, at most waitSeconds. Faults: INVALID_ARGUMENT, and those of the read.
func follow[T any](ctx context.Context, s *Service, known string, waitSeconds int,
	read func(context.Context) (view T, version string, topics []string, err error)) (view T, err error) {
	wrong := &check.Input{}
	whole(wrong, "waitSeconds", waitSeconds, 0, maxWait)
	wrong.Text("known", known, 0, maxVersion)
	if err := wrong.Err(); err != nil {
		return view, err
	}
	over := time.NewTimer(time.Duration(waitSeconds) * time.Second)
	defer over.Stop()
	var topics []string
	for {
		waiter := s.Hub.Wait(topics...) // before what it waits for is read
		view, version, now, err := read(ctx)
		if err != nil || version != known || waitSeconds == 0 {
			waiter.Close()
			return view, err
		}
		more := true
		if slices.Equal(now, topics) {
			more, err = s.await(ctx, waiter, over.C)
		} else {
			topics = now
		}
		waiter.Close()
		if err != nil || !more {
			return view, err
		}
	}
}

// await returns when something may have changed; more is false when the wait or the process ends.
func (s *Service) await(ctx context.Context, waiter *event.Waiter, over <-chan time.Time) (more bool, err error) {
	select {
	case <-waiter.C:
		return true, nil
	case <-over:
		return false, nil
	case <-s.Stopping: // the agent asks another process, and this one's stop waits for nobody
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}
