package task_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/nodetask"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/task"
)

func TestAReportIsKeptAndWakesWhoWaits(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	made := b.ask("k")
	b.SQL(`UPDATE operation SET next_run_at = now() + interval '1 hour' WHERE id = $1`, b.operation.ID)
	running, err := b.report(made.ID, lifecycle.TaskRunning)
	require.NoError(t, err)
	require.NotNil(t, running.StartedAt)
	require.Nil(t, running.EndedAt)
	require.Equal(t, 1, b.Count("operation", "next_run_at > now()"),
		"a task that runs is no reason to look at its operation")

	waiter := b.Hub.Wait(event.TaskTopic(made.ID), event.QueueTopic)
	defer waiter.Close()
	ended, err := b.report(made.ID, lifecycle.TaskSucceeded)
	require.NoError(t, err)
	require.Equal(t, lifecycle.TaskSucceeded, ended.State)
	require.Equal(t, 0, *ended.ExitCode)
	require.JSONEq(t, `{"exitCode":0}`, string(ended.Result))
	require.Equal(t, "done", ended.Message)
	require.Equal(t, running.StartedAt.UTC(), ended.StartedAt.UTC())
	require.NotNil(t, ended.EndedAt)
	select {
	case <-waiter.C:
	default:
		t.Fatal("nobody was woken")
	}
	require.Equal(t, 1, b.Count("operation", "next_run_at <= now()"), "its operation is due")
	require.Zero(t, b.Count("audit_entry", "action = 'reportNodeTask'"))
}

func TestRepeatedAndLateReports(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	made := b.ask("k")
	first, err := b.report(made.ID, lifecycle.TaskSucceeded)
	require.NoError(t, err, "the report of its start may be lost")
	again, err := b.report(made.ID, lifecycle.TaskSucceeded)
	require.NoError(t, err)
	require.Equal(t, first.EndedAt.UTC(), again.EndedAt.UTC(), "the same word again changes nothing")
	for _, state := range []lifecycle.NodeTaskState{lifecycle.TaskRunning, lifecycle.TaskFailed, lifecycle.TaskCanceled,
		lifecycle.TaskTimedOut} {
		_, err := b.report(made.ID, state)
		platformtest.Refused(t, err, fault.Conflict, "")
		found, _ := fault.As(err)
		require.False(t, found.CanRetry(), "an agent must not try for ever")
	}
	require.Equal(t, lifecycle.TaskSucceeded, b.stored(made.ID).State)
}

func TestFencesAreHeld(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	made := b.ask("k")
	b.SQL(`UPDATE node_task SET fence = 3 WHERE id = $1`, made.ID)
	_, err := b.report(made.ID, lifecycle.TaskSucceeded)
	platformtest.Refused(t, err, fault.StaleFence, "input.fence")
	_, err = b.Append(b.agent, task.OutputInput{TaskID: made.ID, Fence: 2, Stream: lifecycle.StreamStdout, Data: "x"})
	platformtest.Refused(t, err, fault.StaleFence, "input.fence")
	_, err = b.Report(b.agent, task.ReportInput{TaskID: made.ID, Fence: 4, State: lifecycle.TaskFailed})
	platformtest.Refused(t, err, fault.InvalidArgument, "input.fence")
	after := b.stored(made.ID)
	require.Equal(t, lifecycle.TaskPending, after.State)
	require.Empty(t, after.Stdout)
	_, err = b.Report(b.agent, task.ReportInput{TaskID: made.ID, Fence: 3, State: lifecycle.TaskFailed})
	require.NoError(t, err)
}

func TestOnlyTheTasksOwnNodeReports(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	made := b.ask("k")
	_, other := b.Node(1)
	for name, ctx := range map[string]contextual{"another node": b.With(other), "the adapter": b.adapter,
		"an operator": b.As(b.Operator())} {
		_, err := b.Report(ctx, task.ReportInput{TaskID: made.ID, Fence: 1, State: lifecycle.TaskFailed})
		require.True(t, fault.Is(err, fault.NotFound) || fault.Is(err, fault.Forbidden), "%s: %v", name, err)
		_, err = b.Append(ctx, task.OutputInput{TaskID: made.ID, Fence: 1, Stream: lifecycle.StreamStdout, Data: "x"})
		require.True(t, fault.Is(err, fault.NotFound) || fault.Is(err, fault.Forbidden), "%s: %v", name, err)
	}
	_, err := b.report(ids.New(ids.NodeTask), lifecycle.TaskFailed)
	platformtest.Refused(t, err, fault.NotFound, "")
	after := b.stored(made.ID)
	require.Equal(t, lifecycle.TaskPending, after.State)
	require.Empty(t, after.Stdout)
}

func TestBadReportsAreRefusedByTheirField(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	made := b.ask("k")
	thousand := 1_000
	zero := 0
	for name, c := range map[string]struct {
		change func(*task.ReportInput)
		code   fault.Code
		path   string
	}{
		"pending": {func(in *task.ReportInput) { in.State = lifecycle.TaskPending }, fault.InvalidArgument,
			"input.state"},
		"running, ended": {func(in *task.ReportInput) { in.State, in.ExitCode = lifecycle.TaskRunning, &zero },
			fault.InvalidArgument, "input.state"},
		"long message": {func(in *task.ReportInput) { in.Message = strings.Repeat("ä", nodetask.MaxMessage+1) },
			fault.InvalidArgument, "input.message"},
		"message, NUL": {func(in *task.ReportInput) { in.Message = "a\x00" }, fault.InvalidArgument, "input.message"},
		"large result": {func(in *task.ReportInput) {
			in.Result = json.RawMessage(`{"x":"` + strings.Repeat("x", nodetask.MaxResult) + `"}`)
		}, fault.DocumentTooLarge, "input.result"},
		"result, NUL": {func(in *task.ReportInput) { in.Result = json.RawMessage(`{"x":"\u0000"}`) },
			fault.InvalidArgument, "input.result"},
		"result, number": {func(in *task.ReportInput) { in.Result = json.RawMessage(`{"x":1e999999}`) },
			fault.InvalidArgument, "input.result"},
		"result, list": {func(in *task.ReportInput) { in.Result = json.RawMessage(`[]`) }, fault.InvalidArgument,
			"input.result"},
		"exit code": {func(in *task.ReportInput) { in.ExitCode = &thousand }, fault.InvalidArgument, "input.exitCode"},
	} {
		in := task.ReportInput{TaskID: made.ID, Fence: 1, State: lifecycle.TaskFailed}
		c.change(&in)
		_, err := b.Report(b.agent, in)
		require.Error(t, err, name)
		platformtest.Refused(t, err, c.code, c.path)
	}
	require.Equal(t, lifecycle.TaskPending, b.stored(made.ID).State)
	message := strings.Repeat("ä", nodetask.MaxMessage)
	after, err := b.Report(b.agent, task.ReportInput{TaskID: made.ID, Fence: 1, State: lifecycle.TaskFailed,
		Message: message})
	require.NoError(t, err)
	require.Equal(t, message, after.Message)
}

func TestOutputIsKeptOnceAndInOrder(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	made := b.ask("k")
	add := func(stream lifecycle.OutputStream, offset int, data string) int {
		t.Helper()
		next, err := b.Append(b.agent, task.OutputInput{TaskID: made.ID, Fence: 1, Stream: stream, Offset: offset,
			Data: data})
		require.NoError(t, err)
		return next
	}
	require.Equal(t, 3, add(lifecycle.StreamStdout, 0, "abc"))
	require.Equal(t, 3, add(lifecycle.StreamStdout, 0, "abc"), "a repeat is not kept twice")
	require.Equal(t, 3, add(lifecycle.StreamStdout, 1, "b"))
	require.Equal(t, 6, add(lifecycle.StreamStdout, 2, "cdäf"[:4]), "what was kept before is cut off") // c d ä
	require.Equal(t, 6, add(lifecycle.StreamStdout, 10, "later"), "what is missing is asked for")
	require.Equal(t, 2, add(lifecycle.StreamStderr, 0, "ee"))
	require.Equal(t, 2, add(lifecycle.StreamStderr, 0, ""))
	row := b.stored(made.ID)
	require.Equal(t, "abcdä", row.Stdout)
	require.Equal(t, "ee", row.Stderr)

	_, err := b.Append(b.agent, task.OutputInput{TaskID: made.ID, Fence: 1, Stream: lifecycle.StreamStdout, Offset: 5,
		Data: "äx"})
	platformtest.Refused(t, err, fault.InvalidArgument, "input.offset")
	require.Equal(t, "abcdä", b.stored(made.ID).Stdout)

	_, err = b.report(made.ID, lifecycle.TaskSucceeded)
	require.NoError(t, err)
	require.Equal(t, 6, add(lifecycle.StreamStdout, 3, "dä"), "a lost answer can be asked for after the end")
	_, err = b.Append(b.agent, task.OutputInput{TaskID: made.ID, Fence: 1, Stream: lifecycle.StreamStdout, Offset: 6,
		Data: "x"})
	platformtest.Refused(t, err, fault.Conflict, "")
}

func TestOutputBeyondItsBoundIsSwallowed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	made := b.ask("k")
	piece := strings.Repeat("x", nodetask.MaxPiece-1) + "\n"
	add := func(offset int, data string) int {
		t.Helper()
		next, err := b.Append(b.agent, task.OutputInput{TaskID: made.ID, Fence: 1, Stream: lifecycle.StreamStdout,
			Offset: offset, Data: data})
		require.NoError(t, err)
		return next
	}
	offset := add(0, "…") // three bytes, so that the bound lies within a piece
	for range 6 {
		offset = add(offset, piece)
	}
	require.Equal(t, 3+6*nodetask.MaxPiece, offset, "the agent is not stopped by the bound")
	require.Len(t, b.stored(made.ID).Stdout, nodetask.MaxOutput)
	require.Equal(t, 200_001, add(200_000, "x"))

	wide := b.ask("k2")
	made = wide
	offset = add(0, "12")
	for range 5 {
		offset = add(offset, strings.Repeat("€", nodetask.MaxPiece/3))
	}
	kept := b.stored(wide.ID).Stdout
	require.LessOrEqual(t, len(kept), nodetask.MaxOutput)
	require.Greater(t, len(kept), nodetask.MaxOutput-4)
	require.True(t, strings.HasSuffix(kept, "€"), "the last character is whole")
}

func TestBadOutputIsRefusedByItsField(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	made := b.ask("k")
	for path, in := range map[string]task.OutputInput{
		"input.stream": {Stream: "STDLOG", Data: "x"},
		"input.offset": {Stream: lifecycle.StreamStdout, Offset: -1, Data: "x"},
		"input.data":   {Stream: lifecycle.StreamStdout, Data: strings.Repeat("x", nodetask.MaxPiece+1)},
	} {
		in.TaskID, in.Fence = made.ID, 1
		_, err := b.Append(b.agent, in)
		platformtest.Refused(t, err, fault.InvalidArgument, path)
	}
	_, err := b.Append(b.agent, task.OutputInput{TaskID: made.ID, Fence: 1, Stream: lifecycle.StreamStdout,
		Data: "a\x00b"})
	platformtest.Refused(t, err, fault.InvalidArgument, "input.data")
	require.Empty(t, b.stored(made.ID).Stdout)
}

// callToken speaks for the instance and for no operation, as the token of an action does.
func (b *bench) callToken() contextual {
	b.t.Helper()
	claims := token.Claims{Instance: b.instance.ID, Keys: authz.OperationKeys(authz.TaskRun, authz.TaskRead), ID: "jti",
		ExpiresAt: time.Now().Add(time.Hour)}
	text, err := b.Ring.Sign(claims, time.Now())
	require.NoError(b.t, err)
	return b.With(text)
}

func TestAnOutcomeOfALostFutureIsToldSo(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	require.NoError(t, b.DB.Ping(t.Context())) // the first connection begins the generation of the test's database
	unknown := ids.New(ids.NodeTask)
	_, err := b.report(unknown, lifecycle.TaskSucceeded)
	require.True(t, fault.Is(err, fault.NotFound), "an id of the present: %v", err)
	b.SQL(`INSERT INTO platform.generation_log (number, system_identifier, timeline, database, began_at)
		SELECT number + 1, system_identifier, timeline, database, now() + interval '1 second' FROM platform.generation_log
		ORDER BY number DESC LIMIT 1`)
	_, err = b.report(unknown, lifecycle.TaskSucceeded)
	require.True(t, fault.Is(err, fault.CursorExpired), "%v", err)
}
