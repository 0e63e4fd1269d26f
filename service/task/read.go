package task

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

const (
	list = "nodeTasks" // names the cursors of task lists
	// MaxWait bounds how long Get waits for a task's end, in seconds.
	MaxWait = 20
	// waitLook is how often a waiting Get polls without a wake-up.
	waitLook = 5 * time.Second
	// maxList bounds what a page of tasks holds, in bytes; a page that would hold more ends earlier.
	maxList = 16 << 20
)

// Get reads a task; with waitSeconds it waits for the task's end, at most so long. It requires
// task.read. NOT_FOUND when it is missing or hidden, INVALID_ARGUMENT at waitSeconds.
func (s *Service) Get(ctx context.Context, id ids.ID, waitSeconds int) (*db.NodeTask, error) {
	if waitSeconds < 0 || waitSeconds > MaxWait {
		return nil, fault.New(fault.InvalidArgument, "the wait must be 0 to %d seconds", MaxWait).At("waitSeconds")
	}
	if waitSeconds == 0 {
		return s.get(ctx, id)
	}
	waiter := s.Hub.Wait(event.TaskTopic(id)) // before the first look, so that no end is missed
	defer waiter.Close()
	over := time.NewTimer(time.Duration(waitSeconds) * time.Second)
	defer over.Stop()
	look := time.NewTicker(waitLook)
	defer look.Stop()
	for {
		row, err := s.get(ctx, id)
		if err != nil || row.State.Terminal() {
			return row, err
		}
		select {
		case <-waiter.C:
		case <-look.C:
		case <-over.C:
			return s.get(ctx, id)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (s *Service) get(ctx context.Context, id ids.ID) (*db.NodeTask, error) {
	var found *db.NodeTask
	actor, err := s.DB.Read(ctx, tx.Row(&found, rows.NodeTask,
		`SELECT `+rows.NodeTaskColumns+` FROM node_task WHERE id = $1`, id))
	if err != nil {
		return nil, err
	}
	if found == nil {
		return nil, fault.NoSuch()
	}
	if err := authz.RequireOn(actor, authz.TaskRead, object(found)); err != nil {
		return nil, err
	}
	return found, nil
}

// List reads the tasks of a member, newest first. A page ends early when its tasks are large. It
// requires task.read. NOT_FOUND when the member is missing or hidden.
func (s *Service) List(ctx context.Context, memberID ids.ID, args page.Args) (*page.Page[*db.NodeTask], error) {
	var after ids.ID
	if err := args.Decode(list, &after); err != nil {
		return nil, err
	}
	var member *authz.Object
	tasks := bounded{most: maxList}
	actor, err := s.DB.Read(ctx,
		tx.Row(&member, scanObject, `SELECT tenant_id, project_id, instance_id FROM member WHERE id = $1`, memberID),
		tx.Query{Scan: tasks.scan, SQL: `SELECT ` + rows.NodeTaskColumns + ` FROM node_task WHERE member_id = $1
			AND ($2 = ''
			OR id < $2)
			ORDER BY id DESC LIMIT $3`, Args: []any{memberID, after, args.First + 1}})
	if err != nil {
		return nil, err
	}
	if member == nil {
		return nil, fault.NoSuch()
	}
	if err := authz.RequireOn(actor, authz.TaskRead, *member); err != nil {
		return nil, err
	}
	if tasks.full {
		args.First = max(1, min(args.First, len(tasks.found)-1))
	}
	return page.Cut(args, tasks.found, func(row *db.NodeTask) string { return page.Cursor(list, row.ID) }), nil
}

func scanObject(row pgx.CollectableRow) (*authz.Object, error) {
	x := new(authz.Object)
	return x, row.Scan(&x.TenantID, &x.ProjectID, &x.InstanceID)
}

// bounded collects tasks until they hold more than most bytes; it is full then, and the last task
// is the one that was too many.
type bounded struct {
	most, held int
	found      []*db.NodeTask
	full       bool
}

func (b *bounded) scan(stored pgx.Rows) error {
	defer stored.Close()
	b.found, b.held, b.full = nil, 0, false
	for !b.full && stored.Next() {
		row, err := rows.NodeTask(stored)
		if err != nil {
			return err
		}
		b.held += size(row)
		b.found, b.full = append(b.found, row), b.held > b.most
	}
	stored.Close()
	return stored.Err()
}

func size(row *db.NodeTask) int {
	return len(row.Spec) + len(row.Result) + len(row.Stdout) + len(row.Stderr) + len(row.Message)
}
