package chaos

import (
	"context"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// watcher is one subscriber and everything that it was told.
type watcher struct {
	name     string
	instance string // empty: the whole project
	mu       sync.Mutex
	seen     []string // ids of events, in the order of their coming
	failed   error
}

// watch opens the subscribers, spread over the servers. They reconnect by themselves, and end with ctx.
func (s *Suite) watch(ctx context.Context, fleet []*ship) []*watcher {
	var all []*watcher
	begin := func(w *watcher, follow func(yield func(*gql.Event, error) bool)) {
		all = append(all, w)
		go follow(w.take(ctx))
	}
	for i := range s.Subscribers {
		for _, one := range fleet {
			c, err := s.client(i)
			if err != nil {
				continue
			}
			begin(&watcher{name: fmt.Sprintf("timeline %d of %s", i, one.id), instance: one.id}, c.Timeline(ctx, one.id, ""))
		}
	}
	return all
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

// table reads the events of the instances from the database itself.
func (s *Suite) table(ctx context.Context, conn *pgx.Conn) (map[string][]string, error) {
	found, err := conn.Query(ctx, `SELECT instance_id, id FROM app_instance_event ORDER BY instance_id, seq`)
	if err != nil {
		return nil, fmt.Errorf("read the events: %w", err)
	}
	events := make(map[string][]string)
	var instance, id string
	_, err = pgx.ForEachRow(found, []any{&instance, &id}, func() error {
		events[instance] = append(events[instance], id)
		return nil
	})
	return events, err
}
