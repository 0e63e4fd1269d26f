package task

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/nodetask"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

// ReportInput is what an agent reports of a task.
type ReportInput struct {
	TaskID   ids.ID
	Fence    int
	State    lifecycle.NodeTaskState
	ExitCode *int
	Result   json.RawMessage
	Message  string
	// ProgressDone and ProgressTotal are in bytes, while it runs; nil when not reported.
	ProgressDone, ProgressTotal *float64
}

// Report takes the report of the calling node's agent on a task of its own: that it began, how far it is, or how it
// ended. The same report again changes nothing, and progress never falls back. The progress of a fetch goes to the
// instance's timeline. It requires task.execute on the node.
//
// Before it begins, an agent reports RUNNING without progress: a task that is to be canceled is refused then, and so
// nothing begins after its operation ended.
//
// Faults: INVALID_ARGUMENT, NOT_FOUND, CURSOR_EXPIRED for a task of a future that the database lost, FORBIDDEN,
// STALE_FENCE when a newer dispatch exists, CONFLICT (not retryable) when the task has ended otherwise or is to be
// canceled, DOCUMENT_TOO_LARGE for a result over its bound.
func (s *Service) Report(ctx context.Context, in ReportInput) (*db.NodeTask, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	var out *db.NodeTask
	var agent *authz.Actor
	ended := false
	err := s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		row, err := in.lock(ctx, t)
		if err != nil {
			return err
		}
		if told(row, in) {
			agent = t.Actor
			return errTold
		}
		out, err = in.take(ctx, t, row)
		ended = out != row && in.State.Terminal()
		return err
	})
	if err == nil && ended {
		s.Metrics.TaskEnded(string(out.Kind), string(out.State))
	}
	if errors.Is(err, errTold) {
		return s.tell(ctx, agent, in)
	}
	return out, err
}

// lock locks the task of the report and checks the fence. Where the task ends, it first wakes the operation.
func (in *ReportInput) lock(ctx context.Context, t *tx.Tx) (*db.NodeTask, error) {
	if in.State.Terminal() {
		if err := wakeOperation(ctx, t, in.TaskID); err != nil {
			return nil, err
		}
	}
	row, err := lock(ctx, t, "reportNodeTask", authz.TaskExecute, in.TaskID)
	if err != nil {
		return nil, lost(ctx, t, in.TaskID, err)
	}
	return row, checkFence(row.Fence, in.Fence)
}

// take writes the report to the locked task, unless it has nothing new.
func (in *ReportInput) take(ctx context.Context, t *tx.Tx, row *db.NodeTask) (*db.NodeTask, error) {
	if in.begins() && row.CancelRequested && !row.State.Terminal() {
		return nil, fault.New(fault.Conflict, "task %s is withdrawn: do not begin it, and report it as CANCELED",
			row.ID).Retry(false)
	}
	if row.State == in.State && !in.further(row) {
		return row, nil
	}
	if row.State.Terminal() {
		return nil, ended(row.ID, row.State)
	}
	return in.write(ctx, t, row)
}

// begins reports whether the report is that the task begins, by which the agent also asks whether it may.
func (in *ReportInput) begins() bool {
	return in.State == lifecycle.TaskRunning && in.ProgressDone == nil && in.ProgressTotal == nil
}

// check refuses a report that is wrong by itself.
func (in *ReportInput) check() error {
	switch {
	case in.State == lifecycle.TaskPending:
		return fault.New(fault.InvalidArgument,
			"state must be RUNNING or the state in which the task ended").At("input.state")
	case utf8.RuneCountInString(in.Message) > nodetask.MaxMessage:
		return fault.New(fault.InvalidArgument, "the message may have at most %d characters",
			nodetask.MaxMessage).At("input.message")
	case strings.ContainsRune(in.Message, 0):
		return fault.New(fault.InvalidArgument, "the message contains a NUL").At("input.message")
	case len(in.Result) > nodetask.MaxResult:
		return fault.New(fault.DocumentTooLarge, "the result may have at most %d bytes",
			nodetask.MaxResult).At("input.result")
	case in.ExitCode != nil && (*in.ExitCode < -1 || *in.ExitCode > 255):
		return fault.New(fault.InvalidArgument, "an exit code is -1 to 255").At("input.exitCode")
	case in.State == lifecycle.TaskRunning && (in.ExitCode != nil || len(in.Result) > 0):
		return fault.New(fault.InvalidArgument, "a task that runs has no exit code and no result yet").At("input.state")
	}
	if err := in.checkProgress(); err != nil {
		return err
	}
	if trimmed := bytes.TrimSpace(in.Result); len(trimmed) > 0 && trimmed[0] != '{' {
		return fault.New(fault.InvalidArgument, "the result must be an object").At("input.result")
	}
	return nil
}

// checkFence refuses the report of an agent that works on an older dispatch.
func checkFence(stored, said int) error {
	switch {
	case said < stored:
		return fault.New(fault.StaleFence, "the task was dispatched again under fence %d", stored).At("input.fence")
	case said > stored:
		return fault.New(fault.InvalidArgument, "fence %d was never issued; the task's is %d", said,
			stored).At("input.fence")
	}
	return nil
}

// ended is the refusal of everything that comes after a task's end; repeating it is useless.
func ended(id ids.ID, state lifecycle.NodeTaskState) error {
	return fault.New(fault.Conflict, "task %s has ended as %s", id, state).Retry(false)
}

const reportSQL = `UPDATE node_task SET state = $2, exit_code = $3, result = $4, message = $5,
	started_at = coalesce(started_at, $6), ended_at = $7, progress_done = $8, progress_total = $9 WHERE id = $1
	RETURNING ` + rows.NodeTaskColumns

func (in *ReportInput) write(ctx context.Context, t *tx.Tx, row *db.NodeTask) (*db.NodeTask, error) {
	endedAt := &t.Now
	if !in.State.Terminal() {
		endedAt = nil
	}
	var result any
	if len(in.Result) > 0 {
		result = []byte(in.Result)
	}
	done, total := in.progress(row)
	after, err := one(ctx, t, reportSQL, row.ID, in.State, in.ExitCode, result, in.Message, t.Now, endedAt, done, total)
	if unstorable(err) {
		return nil, fault.New(fault.InvalidArgument,
			"the result holds text or numbers that cannot be stored").At("input.result").Because(err)
	}
	if err != nil {
		return nil, fmt.Errorf("report node task %s: %w", row.ID, err)
	}
	if in.State.Terminal() || row.State != in.State { // who waits for its end need not look at every piece
		t.Wake(event.TaskTopic(row.ID))
	}
	return after, nil
}

// unstorable reports whether PostgreSQL refused a value for its content, such as a NUL within JSON.
func unstorable(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && strings.HasPrefix(refused.Code, "22")
}

// wakeOperation makes the operation of an open task due, though the node may not see it. It comes
// before the task's lock, as everywhere: operation, then what belongs to it.
func wakeOperation(ctx context.Context, t *tx.Tx, task ids.ID) error {
	tag, err := t.Exec(ctx, `SELECT platform.wake_operation(operation_id) FROM node_task
		WHERE id = $1 AND ended_at IS NULL AND operation_id IS NOT NULL`, task)
	if err != nil {
		return fmt.Errorf("wake the operation of node task %s: %w", task, err)
	}
	if tag.RowsAffected() > 0 {
		t.Wake(event.QueueTopic)
	}
	return nil
}
