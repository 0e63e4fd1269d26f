package task

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

const (
	// streamLook is how often a node's stream polls without a wake-up, and so checks again that the
	// node's credential is valid.
	streamLook = 4 * time.Second
	// streamBatch is how many tasks are read at once; each is at most about 1 MiB.
	streamBatch = 16
)

// mark is what an agent was last sent of a task; a task that differs from it is sent again.
type mark struct {
	fence    int
	state    lifecycle.NodeTaskState
	canceled bool
}

// stream is one agent's view of its node's open tasks.
type stream struct {
	db   *tx.DB
	node ids.ID
	sent map[ids.ID]mark
	out  chan *db.NodeTask
}

// Follow sends the open tasks of the calling node, then each that is new or has another state, fence
// or cancelation than was sent, until ctx ends or the credential is not valid any more. In the second case
// it calls end with the reason before it closes the channel. It requires task.execute on the node.
func (s *Service) Follow(ctx context.Context, end func(error)) (<-chan *db.NodeTask, error) {
	actor, err := s.DB.Read(ctx)
	if err != nil {
		return nil, err
	}
	if err := authz.RequireOn(actor, authz.TaskExecute, authz.Object{NodeID: actor.NodeID}); err != nil {
		return nil, err
	}
	follower := &stream{db: s.DB, node: actor.NodeID, sent: make(map[ids.ID]mark), out: make(chan *db.NodeTask)}
	waiter := s.Hub.Wait(event.NodeTopic(actor.NodeID))
	left := s.Metrics.AgentConnected()
	go func() {
		defer left()
		defer close(follower.out)
		defer waiter.Close()
		if err := follower.run(ctx, waiter); err != nil && ctx.Err() == nil {
			end(err)
		}
	}()
	return follower.out, nil
}

// run polls at once, at each wake-up and every streamLook. It waits for a database that is away.
func (f *stream) run(ctx context.Context, waiter *event.Waiter) error {
	look := time.NewTicker(streamLook)
	defer look.Stop()
	for {
		if err := f.look(ctx); gone(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-waiter.C:
		case <-look.C:
		}
	}
}

// gone reports whether an error means that the caller is not allowed any more.
func gone(err error) bool {
	return fault.Is(err, fault.Unauthenticated) || fault.Is(err, fault.Forbidden) || fault.Is(err, fault.NotFound)
}

// look sends what differs from what was sent, oldest first.
func (f *stream) look(ctx context.Context) error {
	open, err := f.open(ctx)
	if err != nil {
		return err
	}
	var changed []ids.ID
	live := make(map[ids.ID]mark, len(open))
	for _, task := range open {
		if told, ok := f.sent[task.id]; ok {
			live[task.id] = told
		}
		if live[task.id] != task.mark {
			changed = append(changed, task.id)
		}
	}
	f.sent = live // those that ended are forgotten
	for len(changed) > 0 {
		n := min(len(changed), streamBatch)
		if err := f.send(ctx, changed[:n]); err != nil {
			return err
		}
		changed = changed[n:]
	}
	return nil
}

// marked is an open task without its details.
type marked struct {
	id ids.ID
	mark
}

// open reads the marks of the node's open tasks as the caller, and so authenticates the caller again.
func (f *stream) open(ctx context.Context) ([]marked, error) {
	var found []marked
	actor, err := f.db.Read(ctx, tx.Rows(&found, func(row pgx.CollectableRow) (marked, error) {
		var x marked
		return x, row.Scan(&x.id, &x.fence, &x.state, &x.canceled)
	}, `SELECT id, fence, state, cancel_requested FROM node_task WHERE node_id = $1 AND ended_at IS NULL ORDER BY id
		LIMIT $2`,
		f.node, MaxOpenOfNode))
	if err != nil {
		return nil, err
	}
	return found, authz.RequireOn(actor, authz.TaskExecute, authz.Object{NodeID: f.node})
}

// send reads whole tasks and sends them, no faster than the agent receives them.
func (f *stream) send(ctx context.Context, wanted []ids.ID) error {
	var tasks []*db.NodeTask
	_, err := f.db.Read(ctx, tx.Rows(&tasks, rows.NodeTask,
		`SELECT `+rows.NodeTaskColumns+
			` FROM node_task WHERE id = ANY ($1) AND node_id = $2 AND ended_at IS NULL ORDER BY id`, wanted, f.node))
	if err != nil {
		return err
	}
	for _, task := range tasks {
		select {
		case f.out <- task:
			f.sent[task.ID] = mark{fence: task.Fence, state: task.State, canceled: task.CancelRequested}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
