package chaos

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// Bounds of what the watchers may take.
const (
	firstEvent = time.Minute      // to the first event of the project
	lastEvent  = 30 * time.Second // to the last one, when all is over
)

// watcher is one subscriber to events, with all that it received.
type watcher struct {
	name     string
	instance string // empty: the whole project
	mu       sync.Mutex
	seen     []string // ids of events, in the order of their coming
	failed   error
}

// watchProject opens the subscribers to the whole project, spread over the servers. They begin after
// the event of the cursor, so that nothing depends on when they were opened.
func (s *Suite) watchProject(ctx context.Context, cursor string) ([]*watcher, error) {
	var all []*watcher
	for i := range s.Subscribers {
		c, err := s.client(i)
		if err != nil {
			return nil, err
		}
		w := &watcher{name: fmt.Sprintf("project feed %d", i)}
		go c.ProjectActivity(ctx, s.stack.Demo.ProjectID, cursor)(w.take(ctx))
		all = append(all, w)
	}
	return all, nil
}

// watchTimelines opens the subscribers to each instance.
func (s *Suite) watchTimelines(ctx context.Context, fleet []*ship) ([]*watcher, error) {
	var all []*watcher
	for i := range s.Subscribers {
		for _, one := range fleet {
			c, err := s.client(i + one.number)
			if err != nil {
				return nil, err
			}
			w := &watcher{name: fmt.Sprintf("timeline %d of %s", i, one.id), instance: one.id}
			go c.Timeline(ctx, one.id, "")(w.take(ctx))
			all = append(all, w)
		}
	}
	return all, nil
}

// take keeps what comes until ctx ends.
func (w *watcher) take(ctx context.Context) func(*gql.Event, error) bool {
	return func(event *gql.Event, err error) bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		if err != nil {
			if ctx.Err() == nil {
				w.failed = err
			}
			return false
		}
		w.seen = append(w.seen, event.Id)
		return true
	}
}

// firstOf waits for the first event of a feed that was opened before anything happened.
func firstOf(ctx context.Context, feed iter.Seq2[*gql.Event, error]) (*gql.Event, error) {
	for event, err := range feed {
		return event, err
	}
	return nil, errors.Join(errors.New("the feed ended before its first event"), ctx.Err())
}

// table reads what subscribers must have received from the database itself: for each instance in the order of its
// timeline, and under "" for the project in the order of commits, after the event named.
func table(ctx context.Context, on querier, project, after string) (map[string][]string, error) {
	events := make(map[string][]string)
	for _, sql := range []string{
		`SELECT instance_id, id FROM app_instance_event WHERE project_id = $1 AND $2 = $2 AND instance_id IS NOT NULL
			ORDER BY instance_id, seq`,
		`SELECT '', id FROM app_instance_event WHERE project_id = $1
			AND (generation, xid, "position") > (SELECT generation, xid, "position" FROM app_instance_event WHERE id = $2)
			ORDER BY generation, xid, "position"`,
	} {
		found, err := on.Query(ctx, sql, project, after)
		if err != nil {
			return nil, fmt.Errorf("read the events: %w", err)
		}
		var key, id string
		if _, err := pgx.ForEachRow(found, []any{&key, &id}, func() error {
			events[key] = append(events[key], id)
			return nil
		}); err != nil {
			return nil, fmt.Errorf("read the events: %w", err)
		}
	}
	return events, nil
}

// compare returns how what each subscriber received differs from the table, once the last event has had time to come.
func compare(ctx context.Context, watched []*watcher, events map[string][]string) []string {
	ctx, cancel := context.WithTimeout(ctx, lastEvent)
	defer cancel()
	var found []string
	for _, w := range watched {
		if want := events[w.instance]; !w.await(ctx, want) {
			found = append(found, w.differs(want))
		}
	}
	return report("every subscriber received the events of the table", found)
}

func (w *watcher) differs(want []string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := 0
	for at < min(len(w.seen), len(want)) && w.seen[at] == want[at] {
		at++
	}
	return fmt.Sprintf("%s: %d events received of %d, first difference at %d, received %v, error %v",
		w.name, len(w.seen), len(want), at, w.seen[at:min(at+2, len(w.seen))], w.failed)
}

// await waits for events that are on their way.
func (w *watcher) await(ctx context.Context, want []string) bool {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		w.mu.Lock()
		same, over := slices.Equal(w.seen, want), len(w.seen) > len(want) || w.failed != nil
		w.mu.Unlock()
		if same || over {
			return same
		}
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
}

// follower is one subscriber to an operation's progress.
type follower struct {
	operation string
	mu        sync.Mutex
	states    []gql.OperationState // each as often as it came anew
	percent   []int
	ended     bool // the feed completed by itself
	failed    error
}

// follow keeps what comes until the feed ends. An operation of a few steps has a few dozen states; what
// comes beyond the bound is counted as a failure.
func (f *follower) follow(ctx context.Context, on *client.Client) {
	const most = 10_000
	for op, err := range on.OperationProgress(ctx, f.operation) {
		f.mu.Lock()
		switch {
		case err != nil && ctx.Err() == nil:
			f.failed = err
		case err == nil:
			f.states, f.percent = append(f.states, op.State), append(f.percent, op.Percent)
		}
		over := len(f.states) > most
		f.mu.Unlock()
		if over {
			return
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = ctx.Err() == nil && f.failed == nil
}

// await waits for the feed's end: one whose server was killed or frozen comes back after its backoff.
func (f *follower) await(ctx context.Context) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		f.mu.Lock()
		over := f.ended || f.failed != nil
		f.mu.Unlock()
		if over {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// wrong returns what the subscriber received that is not true, given the operation's state in the table.
func (f *follower) wrong(state string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, at := range f.states {
		switch {
		case i > 0 && client.Ended(f.states[i-1]):
			return fmt.Sprintf("%s was %s after it was %s", f.operation, at, f.states[i-1])
		case i > 0 && f.percent[i] < f.percent[i-1]:
			return fmt.Sprintf("%s went back from %d%% to %d%%", f.operation, f.percent[i-1], f.percent[i])
		}
	}
	if last := len(f.states) - 1; f.failed != nil || !f.ended || last < 0 || string(f.states[last]) != state {
		return fmt.Sprintf("%s is %s, and was reported %v, ended %t, error %v", f.operation, state, f.states, f.ended,
			f.failed)
	}
	return ""
}
