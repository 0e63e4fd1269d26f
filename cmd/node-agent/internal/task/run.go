package task

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/journal"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/pace"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/sandbox"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/text"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
	"github.com/gpuaas/app-platform/sdk/nodetask"
)

const (
	// runSlack is how much longer than a run's own timeout the agent waits for the member's init.
	runSlack = 45 * time.Second
	// cancelEvery is how often a cancellation is repeated until the run has ended.
	cancelEvery = 500 * time.Millisecond
	// maxResult bounds a result as JSON, in bytes; the platform takes 256 KiB.
	maxResult = 240 << 10
)

// RunResult is the result of a RUN. A stream that is larger than wire.StreamCap is its tail here.
type RunResult struct {
	ExitCode  int    `json:"exitCode"`
	Stdout    string `json:"stdout"`
	Stderr    string `json:"stderr"`
	Truncated bool   `json:"truncated"`
}

func (e *Executor) run(ctx context.Context, task Task, spec *nodetask.Run, attempt Attempt) (journal.Outcome, error) {
	opener := e.opener(task)
	request, err := runRequest(ctx, opener, spec)
	spent := spentBefore(err, attempt)
	if err != nil && spent == nil {
		return journal.Outcome{}, err
	}
	result, err := e.kept(ctx, opener, attempt, request, spent)
	if err != nil {
		return journal.Outcome{}, err
	}
	return runOutcome(result, task.Timeout), nil
}

// kept has the member's init do the request, or finds its result. With spent the run is never started, and a run that
// the init does not know fails with spent.
func (e *Executor) kept(ctx context.Context, opener *opener, attempt Attempt, request wire.Run, spent error) (
	wire.RunResult, error) {
	task := opener.task
	request.AttachOnly = spent != nil
	client, err := e.clientForRun(ctx, task, attempt, &request)
	if client == nil && (err == nil || wire.HasCode(err, wire.CodeSandboxLost)) {
		return e.storedOr(task, interrupted())
	}
	if err != nil {
		return wire.RunResult{}, err
	}
	if err := opener.hide(); err != nil {
		return wire.RunResult{}, err
	}
	if err := e.Started(task.ID, client.Epoch()); err != nil {
		return wire.RunResult{}, startedError{err}
	}
	result, err := attached(ctx, client, request, task.Timeout, attempt.Output)
	switch {
	case wire.HasCode(err, wire.CodeUnknownRun) && spent != nil:
		return wire.RunResult{}, spent
	case wire.HasCode(err, wire.CodeUnknownRun):
		return wire.RunResult{}, interrupted()
	case wire.HasCode(err, wire.CodeSandboxLost):
		return e.storedOr(task, err)
	}
	return result, err
}

// spentBefore is the error of a secret that is spent because an earlier agent took it for this very run. The run may
// have it and is attached to then; it can never be started.
func spentBefore(err error, attempt Attempt) error {
	if attempt.Resumed && attempt.Epoch != "" && wire.HasCode(err, wire.CodeSecretSpent) {
		return err
	}
	return nil
}

func runRequest(ctx context.Context, opener *opener, spec *nodetask.Run) (wire.Run, error) {
	task := opener.task
	if len(spec.Stdin) > maxContent {
		return wire.Run{}, invalid("stdin", "has %d bytes, the limit is %d", len(spec.Stdin), maxContent)
	}
	env, err := opener.environment(ctx, spec.Env)
	return wire.Run{
		Key: task.ID, Fence: task.Fence, Command: spec.Command, Env: env, WorkDir: spec.WorkDir, User: spec.User,
		Stdin: []byte(spec.Stdin), TimeoutMillis: task.Timeout.Milliseconds(),
	}, err
}

// clientForRun finds the init that a run belongs to. A run that an earlier agent had handed to an init
// is never started by another life of it: it is attached to, or its stored result is taken, or it was
// interrupted. Then the client is nil or the request is AttachOnly. One that is canceled by now must
// still be found, to be killed.
func (e *Executor) clientForRun(ctx context.Context, task Task, attempt Attempt, request *wire.Run) (*sandbox.Client,
	error) {
	if !attempt.Resumed || attempt.Epoch == "" {
		return e.Sandboxes.Ensure(ctx, task.member())
	}
	client, err := e.Sandboxes.Lookup(context.WithoutCancel(ctx), task.MemberID)
	if client != nil {
		request.AttachOnly = request.AttachOnly || client.Epoch() != attempt.Epoch || ctx.Err() != nil
	}
	return client, err
}

func interrupted() error {
	return wire.Errorf(wire.CodeInterrupted,
		"the member's sandbox ended while the task ran; whether the command finished is not known")
}

// storedOr looks for the result that a dead init left on the disk.
func (e *Executor) storedOr(task Task, err error) (wire.RunResult, error) {
	result, ok := e.Sandboxes.StoredResult(task.MemberID, task.ID)
	if !ok || result.Fence != task.Fence {
		return wire.RunResult{}, err
	}
	return result, nil
}

// attached watches a run to its end. The end of ctx by ErrCanceled kills the run and still waits for
// its result; any other end only stops the watching.
func attached(ctx context.Context, client *sandbox.Client, request wire.Run, timeout time.Duration,
	output func(wire.Output)) (wire.RunResult, error) {
	watching, stop := context.WithTimeoutCause(context.WithoutCancel(ctx), timeout+runSlack,
		fmt.Errorf("the member's init did not end the run %s after its timeout", runSlack))
	defer stop()
	defer context.AfterFunc(ctx, func() {
		if errors.Is(context.Cause(ctx), ErrCanceled) {
			keepCanceling(watching, client, request.Key)
		}
		stop()
	})()
	return client.Run(watching, request, output)
}

// keepCanceling repeats until the watching ends, because the first may overtake the run it is for.
func keepCanceling(ctx context.Context, client *sandbox.Client, key string) {
	for ctx.Err() == nil {
		if err := client.Cancel(ctx, key); err != nil || pace.Pause(ctx, cancelEvery) != nil {
			return
		}
	}
}

func runOutcome(result wire.RunResult, timeout time.Duration) journal.Outcome {
	code := result.ExitCode
	state, message := StateSucceeded, ""
	switch {
	case result.Canceled:
		state, message = StateCanceled, "canceled"
	case result.TimedOut:
		state, message = StateTimedOut, fmt.Sprintf("killed after %s", timeout)
	case code != 0:
		state, message = StateFailed, fmt.Sprintf("exit code %d", code)
	}
	outcome := failure(state, nil, message)
	outcome.ExitCode = &code
	outcome.Result = encodeRun(RunResult{
		ExitCode: code, Stdout: text.Clean(result.Stdout), Stderr: text.Clean(result.Stderr),
		Truncated: result.Truncated,
	})
	return outcome
}

// encodeRun shortens the streams until the JSON, where a byte may take six, is within its bound.
func encodeRun(result RunResult) []byte {
	for limit := wire.StreamCap; ; limit /= 2 {
		raw := encode(result)
		if len(raw) <= maxResult {
			return raw
		}
		result.Truncated = true
		result.Stdout, result.Stderr = text.Tail(result.Stdout, limit), text.Tail(result.Stderr, limit)
	}
}
