package webhook

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/service/ledger/event"
	verbs "github.com/gpuaas/app-platform/service/webhook"
	"github.com/gpuaas/app-platform/workers/leader"
)

// The pace of dispatching.
const (
	lockKey  = 7305119003       // advisory lock of the process that dispatches
	slowLook = 30 * time.Second // a project is looked at by itself this often
	// and again this soon after a wake-up, for commits behind a running transaction
	held        = 100 * time.Millisecond
	heldLooks   = 20 // this often
	lookTimeout = 10 * time.Second
	looksAtOnce = 4
	maxProjects = 10_000 // with webhooks
)

// dispatch works whenever this process holds the lock, until ctx ends.
func (w *Worker) dispatch(ctx context.Context) error {
	return leader.Post{Pool: w.DB.Worker(), Lock: lockKey, Log: w.Log,
		Stopped: "dispatching webhooks stopped; it starts again", Work: w.projects}.Run(ctx)
}

// projects keeps a watch for each project that has a webhook to be served.
func (w *Worker) projects(ctx context.Context) error {
	defer w.Stats.Lag.Store(0)
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
func (w *Worker) survey(ctx context.Context, watches map[ids.ID]context.CancelFunc,
	begin func(ids.ID) context.CancelFunc) error {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	found, err := w.DB.Worker().Query(ctx, `SELECT DISTINCT h.project_id FROM webhook h
		JOIN project p ON p.id = h.project_id AND p.deleted_at IS NULL
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
	err = w.DB.Worker().QueryRow(ctx, `SELECT coalesce(greatest(extract(epoch
		FROM now() - min(d.next_attempt_at)), 0), 0)::float8
		FROM webhook_delivery d JOIN webhook h ON h.id = d.webhook_id AND h.status = 'ACTIVE'
		WHERE d.state = 'PENDING'`).Scan(&lag)
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
			w.Log.Warn("a project's webhooks could not be dispatched; it is tried again", "project_id", project,
				"error", err)
		}
		pause := slowLook
		if !found && again > 0 {
			again, pause = again-1, held
		}
		look.Reset(pause)
	}
}
