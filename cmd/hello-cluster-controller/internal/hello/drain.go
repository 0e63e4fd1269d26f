package hello

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

const (
	// changeTime is how long a node watches its work for a change before it answers.
	changeTime = 15 * time.Second
	// silence is the pause after a node that did not answer.
	silence = 2 * time.Second
)

// drain empties peers and reports them drained. When it fails or is canceled, it puts them back in service.
func drain(ctx context.Context, run *adapter.Run) error {
	peers := run.Targets()
	if err := empty(ctx, run, peers); err != nil {
		return reopen(ctx, run, peers, err)
	}
	for _, peer := range peers {
		if err := run.Member(peer.ID, adapter.MemberDrained, health(ctx, run, peer), nil); err != nil {
			return err
		}
	}
	return nil
}

// empty closes peers for new work and waits until none is left; with force it ends the work instead. The evidence is
// what it found at the end.
func empty(ctx context.Context, run *adapter.Run, peers []adapter.Member) error {
	run.Progress("shutting", 20, names(peers)+" takes no new work")
	for _, peer := range peers {
		if err := run.Member(peer.ID, adapter.MemberDraining, health(ctx, run, peer), nil); err != nil {
			return err
		}
	}
	if run.Force() {
		return emptyNow(ctx, run, peers)
	}
	waits := waiting{run: run, work: map[string][]adapter.Work{}}
	err := run.Each(ctx, peers, func(ctx context.Context, peer adapter.Member) error {
		if _, err := run.Do(ctx, peer, "shut", verb("shut", mark(run))); err != nil {
			return err
		}
		return waits.until(ctx, peer)
	})
	if err != nil {
		return err
	}
	return run.Evidence("drained", map[string]any{"workLeft": 0, "peers": len(peers), "seenAt": time.Now().UTC()})
}

// mark is the reason under which this operation keeps a peer shut: an operation opens only what it has shut itself.
func mark(run *adapter.Run) string { return "drain-" + run.Dispatch().OperationID }

func emptyNow(ctx context.Context, run *adapter.Run, peers []adapter.Member) error {
	for _, peer := range peers {
		if _, err := run.Try(ctx, peer, "shut", verb("shut", mark(run)), adapter.Within(quick)); err != nil &&
			!adapter.IsUnreachable(err) {
			return err
		}
	}
	return abort(ctx, run, peers)
}

// abort ends the work of peers. The evidence "workLost" is the work that ran, and "notAsked" names the peers that did
// not answer.
func abort(ctx context.Context, run *adapter.Run, peers []adapter.Member) error {
	var mu sync.Mutex
	lost, silent := []adapter.Work{}, []string{}
	err := run.Each(ctx, peers, func(ctx context.Context, peer adapter.Member) error {
		bounded, cancel := context.WithTimeout(ctx, 2*quick)
		defer cancel()
		result, err := run.Try(bounded, peer, "abort", verb("abort"), adapter.Within(quick))
		mu.Lock()
		defer mu.Unlock()
		if err != nil || result.State != adapter.TaskSucceeded {
			silent = append(silent, name(peer))
		} else {
			lost = append(lost, workOf(peer, result.Stdout)...)
		}
		return context.Cause(ctx)
	})
	if err != nil {
		return err
	}
	if len(silent) > 0 {
		slices.Sort(silent)
		if err := run.Evidence("notAsked", silent); err != nil {
			return err
		}
	}
	return run.Evidence("workLost", map[string]any{"total": len(lost), "work": oldest(lost, adapter.MaxWork)})
}

// oldest returns the n pieces of work that have run longest.
func oldest(work []adapter.Work, n int) []adapter.Work {
	sorted := append([]adapter.Work{}, work...)
	slices.SortStableFunc(sorted, func(a, b adapter.Work) int { return a.Since.Compare(b.Since) })
	return sorted[:min(len(sorted), n)]
}

// waiting holds the work that the peers of one operation still do.
type waiting struct {
	run *adapter.Run

	mu   sync.Mutex
	work map[string][]adapter.Work
}

// until waits until a peer has no work. A node that does not answer may still have some: only an answer or the deadline
// ends the wait.
func (w *waiting) until(ctx context.Context, peer adapter.Member) error {
	known := -1
	for {
		watch := verb("change", strconv.Itoa(known), strconv.Itoa(int(changeTime/time.Second)))
		result, err := w.run.Look(ctx, peer, "work", watch, adapter.Within(2*changeTime))
		if err != nil {
			return err
		}
		if result.State != adapter.TaskSucceeded {
			w.run.Progress("waiting", 40, fmt.Sprintf("the node of %s does not answer: %s", name(peer), result.Message))
			known = -1
			if err := pause(ctx, silence); err != nil {
				return err
			}
			continue
		}
		work := workOf(peer, result.Stdout)
		w.say(peer, work)
		if known = len(work); known == 0 {
			return nil
		}
	}
}

// say publishes the work that the operation waits for, on all its peers.
func (w *waiting) say(peer adapter.Member, work []adapter.Work) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.work[peer.ID] = work
	var all []adapter.Work
	for _, list := range w.work {
		all = append(all, list...)
	}
	if len(all) > 0 {
		w.run.Progress("waiting", 40, fmt.Sprintf("%d pieces of work still run", len(all)))
	}
	w.run.WaitsFor(oldest(all, adapter.MaxWork))
}

// reopen opens peers for work again after a drain that did not finish, and returns reason: why it did not.
func reopen(ctx context.Context, run *adapter.Run, peers []adapter.Member, reason error) error {
	clean, cancel := run.Cleanup(ctx)
	defer cancel()
	if clean.Err() != nil {
		return reason // this is not the end: the operation goes on
	}
	for _, peer := range peers {
		bounded, stop := context.WithTimeout(clean, quick)
		_, err := run.Try(bounded, peer, "reopen", verb("reopen", mark(run)), adapter.Within(quick))
		stop()
		status, judged := adapter.MemberActive, adapter.HealthUnknown
		if err == nil {
			judged = health(clean, run, peer)
		}
		if peer.Status == string(adapter.MemberDrained) || peer.Status == string(adapter.MemberFailed) {
			status = adapter.MemberStatus(peer.Status) // it was out of service before
		}
		if err = errors.Join(err, run.Member(peer.ID, status, judged, nil)); err != nil {
			run.Log().Warn("peer not reopened", "member", peer.ID, "error", err)
		}
	}
	return reason
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
