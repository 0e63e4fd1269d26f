package task

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/cloudinit"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/journal"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/text"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
	"github.com/gpuaas/app-platform/sdk/nodetask"
)

// cloudInit is a run of the member's init, with all that makes a run last: it is timed and kept by the init, found
// again by an agent that was killed, and stopped when it is canceled.
func (e *Executor) cloudInit(
	ctx context.Context, task Task, spec *nodetask.CloudInit, attempt Attempt,
) (journal.Outcome, error) {
	opener := e.opener(task)
	request, err := opener.cloudRequest(spec)
	if err != nil {
		return journal.Outcome{}, err
	}
	output := attempt.Output
	attempt.Output = func(piece wire.Output) {
		if piece.Stream == "stdout" { // the other is its result
			output(piece)
		}
	}
	if err := e.nameHost(ctx, task, spec, attempt); err != nil {
		return journal.Outcome{}, err
	}
	result, err := e.kept(ctx, opener, attempt, request, nil)
	if err != nil {
		return journal.Outcome{}, err
	}
	return cloudOutcome(result, task), nil
}

// nameHost gives the member the host name of its first boot, which it has no right to set itself.
func (e *Executor) nameHost(ctx context.Context, task Task, spec *nodetask.CloudInit, attempt Attempt) error {
	if spec.Hostname == "" || attempt.Resumed {
		return nil
	}
	client, err := e.Sandboxes.Ensure(ctx, task.member())
	if err != nil {
		return err
	}
	return client.SetHostname(spec.Hostname)
}

func (o *opener) cloudRequest(spec *nodetask.CloudInit) (wire.Run, error) {
	task := o.task
	if o.executor.Sandboxes.Isolation().Mode != memberinit.ModeContainer {
		return wire.Run{}, wire.Errorf(wire.CodeCloudInitMissing,
			"members of this node are not containers, and cloud-init runs only in containers")
	}
	data := []byte(spec.UserData)
	if spec.UserDataSealed != nil {
		var err error
		if data, err = o.unseal("userDataSealed", *spec.UserDataSealed); err != nil {
			return wire.Run{}, err
		}
	}
	if len(data) > nodetask.MaxUserData {
		return wire.Run{}, invalid("userData", "has %d bytes, the limit is %d", len(data), nodetask.MaxUserData)
	}
	return wire.Run{
		Key: task.ID, Fence: task.Fence, Builtin: wire.BuiltinCloudInit, TimeoutMillis: task.Timeout.Milliseconds(),
		Stdin: encode(cloudinit.Request{InstanceID: spec.InstanceID, Hostname: spec.Hostname, UserData: data}),
	}, nil
}

// cloudOutcome trusts what cloud-init says of itself. Without a word of it, it was killed.
func cloudOutcome(run wire.RunResult, task Task) journal.Outcome {
	var result cloudinit.Result
	told := json.Unmarshal(run.Stderr, &result) == nil && result.Status != ""
	if !told {
		result = cloudinit.Result{Code: wire.CodeCloudInitFailed, Status: "error", Errors: []string{},
			Stages: []string{}}
	}
	result.Output = text.Clean(run.Stdout)
	state, message := StateSucceeded, ""
	switch {
	case run.Canceled:
		state, message = StateCanceled, "canceled"
	case run.TimedOut:
		state, message = StateTimedOut, fmt.Sprintf("killed after %s", task.Timeout)
	case !told:
		state, message = StateFailed, fmt.Sprintf("cloud-init was ended before it had a result, by exit code %d",
			run.ExitCode)
	case result.Code != "":
		state, message = StateFailed, "cloud-init failed"
		if len(result.Errors) > 0 {
			message += ": " + result.Errors[0]
		}
	}
	outcome := failure(state, nil, message)
	for limit := wire.StreamCap; ; limit /= 2 {
		if outcome.Result = encode(result); len(outcome.Result) <= maxResult {
			return outcome
		}
		result.Output = text.Tail(result.Output, limit)
	}
}
