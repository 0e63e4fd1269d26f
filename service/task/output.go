package task

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/nodetask"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// OutputInput is a piece of a task's output.
type OutputInput struct {
	TaskID ids.ID
	Fence  int
	Stream lifecycle.OutputStream
	// Offset is how many bytes of this output came before.
	Offset int
	Data   string
}

// columns are where each stream is kept.
var columns = map[lifecycle.OutputStream]string{lifecycle.StreamStdout: "stdout", lifecycle.StreamStderr: "stderr"}

// Append keeps a piece of a task's output and returns the next offset wanted. What was kept before
// is not kept again. A piece from beyond the end is not kept: next is then the end, where the agent
// has to go on. What is beyond 64 KiB of a stream is accepted and dropped. It requires task.execute
// on the node.
//
// Faults: INVALID_ARGUMENT, NOT_FOUND, FORBIDDEN, STALE_FENCE, CONFLICT (not retryable) when the task
// has ended.
func (s *Service) Append(ctx context.Context, in OutputInput) (next int, err error) {
	if err := in.check(); err != nil {
		return 0, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		held, err := in.lock(ctx, t)
		if err != nil {
			return err
		}
		var fresh string
		if fresh, next, err = in.place(held); err != nil || fresh == "" {
			return err
		}
		_, err = t.Exec(ctx, fmt.Sprintf(`UPDATE node_task SET %[1]s = %[1]s || $2 WHERE id = $1`, columns[in.Stream]),
			in.TaskID, fresh)
		if err != nil {
			return fmt.Errorf("store output of node task %s: %w", in.TaskID, err)
		}
		return nil
	})
	return next, err
}

func (in *OutputInput) check() error {
	switch {
	case columns[in.Stream] == "":
		return fault.New(fault.InvalidArgument, "a stream is STDOUT or STDERR").At("input.stream")
	case in.Offset < 0:
		return fault.New(fault.InvalidArgument, "an offset is not negative").At("input.offset")
	case len(in.Data) > nodetask.MaxPiece:
		return fault.New(fault.InvalidArgument, "a piece of output may have at most %d bytes",
			nodetask.MaxPiece).At("input.data")
	case strings.ContainsRune(in.Data, 0):
		return fault.New(fault.InvalidArgument, "the output contains a NUL").At("input.data")
	}
	return nil
}

// lock locks the task and returns how many bytes of the stream are kept.
func (in *OutputInput) lock(ctx context.Context, t *tx.Tx) (held int, err error) {
	const action = "appendNodeTaskOutput"
	var where authz.Object
	var fence int
	var state lifecycle.NodeTaskState
	err = t.QueryRow(ctx, fmt.Sprintf(`SELECT tenant_id, project_id, instance_id, node_id, fence, state,
		octet_length(%s)
		FROM node_task WHERE id = $1 FOR UPDATE`, columns[in.Stream]), in.TaskID).
		Scan(&where.TenantID, &where.ProjectID, &where.InstanceID, &where.NodeID, &fence, &state, &held)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, audit.Missing(t, action, authz.TaskExecute, in.TaskID)
	}
	if err != nil {
		return 0, fmt.Errorf("load node task %s: %w", in.TaskID, err)
	}
	if err := audit.Require(t, action, authz.TaskExecute, where, in.TaskID); err != nil {
		return 0, err
	}
	if err := checkFence(fence, in.Fence); err != nil {
		return 0, err
	}
	if state.Terminal() && in.Offset+len(in.Data) > held {
		return 0, ended(in.TaskID, state)
	}
	return held, nil
}

// place returns what of the piece to keep after held bytes, and the offset where the agent goes on.
func (in *OutputInput) place(held int) (fresh string, next int, err error) {
	end := in.Offset + len(in.Data)
	switch {
	case held > nodetask.MaxOutput-utf8.UTFMax: // full: the last character may not have fitted
		return "", max(held, end), nil
	case in.Offset > held, end <= held:
		return "", held, nil
	}
	fresh = in.Data[held-in.Offset:]
	if !utf8.ValidString(fresh) {
		return "", 0, fault.New(fault.InvalidArgument, "the stored output ends at %d, within a character of this piece",
			held).At("input.offset")
	}
	return head(fresh, nodetask.MaxOutput-held), end, nil
}

// head is the longest prefix of at most limit bytes that ends with a whole character.
func head(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}
