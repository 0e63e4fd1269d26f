package webhook

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/gpuaas/app-platform/domain/ids"
	verbs "github.com/gpuaas/app-platform/service/webhook"

	"github.com/gpuaas/app-platform/service/event"
)

// The pace of dispatching.
const (
	lockKey     = 7305119003 // advisory lock of the process that dispatches
	lockEvery   = 5 * time.Second
	slowLook    = 30 * time.Second       // a project is looked at by itself this often
	held        = 100 * time.Millisecond // and again this soon after a wake-up, for commits behind a running transaction
	heldLooks   = 20                     // this often
	lookTimeout = 10 * time.Second
	looksAtOnce = 4
	maxProjects = 10_000 // with webhooks
)

// dispatch works whenever this process holds the lock, until ctx ends.
func (w *Worker) dispatch(ctx context.Context) error {
	tick := time.NewTicker(lockEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		if err := w.lead(ctx); err != nil && ctx.Err() == nil {
			w.Log.Warn("dispatching webhooks stopped; it begins again", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	return nil
}

// lead takes the lock if it is free and works while its connection lives.
func (w *Worker) lead(ctx context.Context) error {
	conn, err := w.DB.Worker().Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	var got bool
	if err := conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1)`, lockKey).Scan(&got); err != nil || !got {
		return err
	}
	defer func() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTimeout)
		defer cancel()
		if _, err := conn.Exec(last, `SELECT pg_advisory_unlock($1)`, lockKey); err != nil {
			_ = conn.Conn().Close(last) // the lock ends with the connection
		}
	}()
	defer w.Stats.Lag.Store(0)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return guard(ctx, conn) })
	group.Go(func() error { return w.projects(ctx) })
	return group.Wait()
}

// guard fails when the lock's connection is lost, which ends the work of this process.
func guard(ctx context.Context, conn *pgxpool.Conn) error {
	tick := time.NewTicker(lockEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := conn.Ping(ctx); err != nil && ctx.Err() == nil {
			return fmt.Errorf("the lock's connection is lost: %w", err)
		}
	}
}

// projects keeps a watch for each project that has a webhook to be served.
func (w *Worker) projects(ctx context.Context) error {
	changed := w.Hub.Wait(verbs.ListTopic)
	defer changed.Close()
	tick := time.NewTicker(slowLook)
	defer tick.Stop()
	watches := make(map[ids.ID]context.CancelFunc)
	looks := make(chan struct{}, looksAtOnce)
	var running sync.WaitGroup
	defer running.Wait()
	for {
		if err := w.survey(ctx, watches, func(project ids.ID) context.CancelFunc {
			watched, stop := context.WithCancel(ctx)
			running.Go(func() { w.watch(watched, project, looks) })
			return stop
		}); err != nil && ctx.Err() == nil {
			w.Log.Warn("webhooks could not be listed; it is tried again", "error", err)
		}
		select {
		case <-ctx.Done():
			for _, stop := range watches {
				stop()
			}
			return nil
		case <-changed.C:
		case <-tick.C:
		}
	}
}

// survey begins and ends watches, and reads how far behind the deliveries are.
func (w *Worker) survey(ctx context.Context, watches map[ids.ID]context.CancelFunc, begin func(ids.ID) context.CancelFunc) error {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	found, err := w.DB.Worker().Query(ctx, `SELECT DISTINCT h.project_id FROM webhook h JOIN project p ON p.id = h.project_id AND p.deleted_at IS NULL
		WHERE h.deleted_at IS NULL AND h.status = 'ACTIVE' LIMIT $1`, maxProjects)
	if err != nil {
		return err
	}
	served, err := pgx.CollectRows(found, pgx.RowTo[ids.ID])
	if err != nil {
		return err
	}
	kept := make(map[ids.ID]bool, len(served))
	for _, project := range served {
		kept[project] = true
		if watches[project] == nil {
			watches[project] = begin(project)
		}
	}
	for project, stop := range watches {
		if !kept[project] {
			stop()
			delete(watches, project)
		}
	}
	var lag float64
	err = w.DB.Worker().QueryRow(ctx, `SELECT coalesce(greatest(extract(epoch FROM now() - min(d.next_attempt_at)), 0), 0)::float8
		FROM webhook_delivery d JOIN webhook h ON h.id = d.webhook_id AND h.status = 'ACTIVE' WHERE d.state = 'PENDING'`).Scan(&lag)
	w.Stats.Lag.Store(int64(lag))
	return err
}

// watch looks at a project whenever something happened in it, until ctx ends. What commits behind a running transaction
// becomes readable a little after its wake-up.
func (w *Worker) watch(ctx context.Context, project ids.ID, looks chan struct{}) {
	waiter := w.Hub.Wait(event.ProjectTopic(project), verbs.Topic(project))
	defer waiter.Close()
	look := time.NewTimer(0)
	defer look.Stop()
	again := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-waiter.C:
			again = heldLooks
		case <-look.C:
		}
		select {
		case <-ctx.Done():
			return
		case looks <- struct{}{}:
		}
		found, err := w.look(ctx, project)
		<-looks
		if err != nil && ctx.Err() == nil {
			w.Log.Warn("a project's webhooks could not be dispatched; it is tried again", "project", project, "error", err)
		}
		pause := slowLook
		if !found && again > 0 {
			again, pause = again-1, held
		}
		look.Reset(pause)
	}
}
