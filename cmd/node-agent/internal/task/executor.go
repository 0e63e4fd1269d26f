package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/fetch"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/journal"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/logs"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/masks"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/sandbox"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/seal"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/text"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
	"github.com/gpuaas/app-platform/sdk/nodetask"
)

// The states a task ends in.
const (
	StateSucceeded = "SUCCEEDED"
	StateFailed    = "FAILED"
	StateTimedOut  = "TIMED_OUT"
	StateCanceled  = "CANCELED"
)

// maxMessage bounds an outcome's message, in bytes.
const maxMessage = 1900

var (
	// ErrCanceled is the cause of a context that ends because the platform canceled the task.
	ErrCanceled = errors.New("canceled by the platform")
	// ErrDetached says that the agent is stopping and the task has no outcome yet.
	ErrDetached = errors.New("the agent stopped before the task ended")
	errTimedOut = errors.New("the task's time has expired")
)

// Task is one node task as the platform sent it.
type Task struct {
	ID         string
	Fence      int64
	Kind       nodetask.Kind
	MemberID   string
	InstanceID string
	// Context names the task's tenant, project, app, instance and operation, for logs and traces.
	Context journal.Context

	Spec    json.RawMessage
	Timeout time.Duration
	// Walls are those of the member, should the task be its first.
	Walls sandbox.Walls
	// Looks says that the task is of no operation: it does not bring a member back that died or was torn down.
	Looks bool
}

// The bounds of a task's time: the most, and that of a task that brings none.
const (
	maxTimeout     = time.Hour
	defaultTimeout = time.Minute
)

// TimeoutOf returns a task's time as it was sent, within its bounds.
func TimeoutOf(seconds int) time.Duration {
	if seconds <= 0 {
		return defaultTimeout
	}
	return min(time.Duration(seconds)*time.Second, maxTimeout)
}

// LogValue returns what lines of the log have of the task: its ids, and what ties it to the request that it is for.
// Logged under the key "" they are fields of the line itself.
func (t Task) LogValue() slog.Value {
	return journal.Entry{TaskID: t.ID, Kind: string(t.Kind), Fence: t.Fence, MemberID: t.MemberID,
		Context: t.Context}.LogValue()
}

func (t Task) member() sandbox.Member {
	return sandbox.Member{ID: t.MemberID, InstanceID: t.InstanceID, Walls: t.Walls, AsFound: t.Looks}
}

// Changes reports whether a kind changes the member. Such tasks of one member are done in the order of their arrival.
func Changes(kind nodetask.Kind) bool {
	switch kind {
	case nodetask.KindWriteFile, nodetask.KindStartProcess, nodetask.KindStopProcess, nodetask.KindTeardown:
		return true
	}
	return false
}

// Executor does tasks. Its fields are set once.
type Executor struct {
	Sandboxes *sandbox.Manager
	Key       *seal.Key
	// Started is called before a run is handed to a member's init, with the init's epoch; an error
	// keeps the run from being started.
	Started func(taskID, epoch string) error
	// Redeem takes delivery of a runtime secret, sealed to this node. Its errors carry a code.
	Redeem func(ctx context.Context, id string) (sealed string, err error)
	// Artifacts fetches into the node's cache.
	Artifacts *fetch.Fetcher
	// Logs has what members print, and Masks what is hidden of it.
	Logs  *logs.Store
	Masks *masks.Keeper
	// NodeAddress is tried by probes beside the loopback address.
	NodeAddress string
	Log         *slog.Logger
}

// Attempt is how a task is to be done.
type Attempt struct {
	// Resumed says that an earlier agent accepted the task; Epoch is what it had noted by Started.
	Resumed bool
	Epoch   string
	// Output takes a run's output as it comes, each stream from its beginning.
	Output func(wire.Output)
	// Progress gets how far a fetch is, in bytes, often and by several goroutines.
	Progress func(done, total int64)
}

// keptByInit reports whether a kind's work is done and timed by the member's init, which outlives the agent.
func keptByInit(kind nodetask.Kind) bool {
	return kind == nodetask.KindRun || kind == nodetask.KindCloudInit
}

// Do executes the task to its outcome. The only errors are ErrDetached, when ctx ended for another
// cause than ErrCanceled, and those of Started.
func (e *Executor) Do(ctx context.Context, task Task, attempt Attempt) (journal.Outcome, error) {
	bounded, cancel := ctx, context.CancelFunc(func() {})
	if !keptByInit(task.Kind) {
		bounded, cancel = context.WithTimeoutCause(ctx, task.Timeout, errTimedOut)
	}
	defer cancel()
	outcome, err := e.dispatch(bounded, task, attempt)
	if err == nil {
		return outcome, nil
	}
	var lost startedError
	switch cause := context.Cause(bounded); {
	case errors.As(err, &lost):
		return journal.Outcome{}, lost.error
	case errors.Is(cause, ErrCanceled):
		return failure(StateCanceled, nil, "canceled"), nil
	case errors.Is(cause, errTimedOut):
		return overdue(err, task.Timeout), nil
	case cause != nil:
		return journal.Outcome{}, ErrDetached
	}
	coded := wire.AsError(err)
	return failure(StateFailed, map[string]any{"code": coded.Code}, coded.Message), nil
}

// overdue returns the outcome of a task whose time ended; that of a fetch has the reason why it was not done.
func overdue(err error, timeout time.Duration) journal.Outcome {
	message := fmt.Sprintf("not done within %s", timeout)
	if coded := wire.AsError(err); coded.Code == wire.CodeArtifactUnavailable {
		return failure(StateTimedOut, map[string]any{"code": coded.Code}, message+": "+coded.Message)
	}
	return failure(StateTimedOut, nil, message)
}

// startedError marks a failure to journal, which is the agent's own and not an outcome of the task.
type startedError struct{ error }

func (e *Executor) dispatch(ctx context.Context, task Task, attempt Attempt) (journal.Outcome, error) {
	spec, err := read(task)
	if err != nil {
		return journal.Outcome{}, err
	}
	switch spec := spec.(type) {
	case *nodetask.Run:
		return e.run(ctx, task, spec, attempt)
	case *nodetask.WriteFile:
		return e.writeFile(ctx, task, spec)
	case *nodetask.StartProcess:
		return e.startProcess(ctx, task, spec)
	case *nodetask.StopProcess:
		return e.namedProcess(ctx, task, spec.Name)
	case *nodetask.InspectProcess:
		return e.namedProcess(ctx, task, spec.Name)
	case *nodetask.Probe:
		return e.probe(ctx, task, spec)
	case *nodetask.FetchArtifact:
		return e.fetchArtifact(ctx, task, spec, attempt)
	case *nodetask.CloudInit:
		return e.cloudInit(ctx, task, spec, attempt)
	case *nodetask.ResidueQuery:
		return e.residue(task)
	}
	return e.teardown(ctx, task)
}

// Settle releases what an outcome came from, once the outcome is journalled: the result that a member keeps of a run,
// and the last lines of a member that was removed. Failure costs a little disk.
func (e *Executor) Settle(ctx context.Context, task Task, outcome journal.Outcome) {
	if task.Kind == nodetask.KindTeardown && outcome.State == StateSucceeded {
		e.Logs.Drop(task.MemberID)
	}
	if !keptByInit(task.Kind) {
		return
	}
	client, err := e.Sandboxes.Lookup(ctx, task.MemberID)
	if err == nil && client != nil {
		err = client.Ack(ctx, task.ID)
	}
	if err != nil {
		e.Log.DebugContext(ctx, "result not acknowledged to the member", "", task, "error", err)
	}
}

func success(result any) journal.Outcome {
	return journal.Outcome{State: StateSucceeded, Result: encode(result)}
}

func failure(state string, result any, message string) journal.Outcome {
	outcome := journal.Outcome{State: state, Message: text.Head(text.Clean([]byte(message)), maxMessage)}
	if result != nil {
		outcome.Result = encode(result)
	}
	return outcome
}

// encode cannot fail: results are plain structures of text and numbers.
func encode(result any) json.RawMessage {
	raw, err := json.Marshal(result)
	if err != nil {
		return json.RawMessage(`{}`)
	}
	return raw
}
