package task

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/cloudinit"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/journal"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/text"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

// maxUserData bounds user data, in bytes.
const maxUserData = 64 << 10

var hostForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// cloudInit is a run of the member's init, with all that makes a run last: it is timed and kept by the init, found again by an
// agent that was killed, and stopped when it is canceled.
func (e *Executor) cloudInit(ctx context.Context, task Task, attempt Attempt) (journal.Outcome, error) {
	request, err := e.cloudRequest(task)
	if err != nil {
		return journal.Outcome{}, err
	}
	output := attempt.Output
	attempt.Output = func(piece wire.Output) {
		if piece.Stream == "stdout" { // the other is its result
			output(piece)
		}
	}
	result, err := e.kept(ctx, task, attempt, request, nil)
	if err != nil {
		return journal.Outcome{}, err
	}
	return cloudOutcome(result, task), nil
}

func (e *Executor) cloudRequest(task Task) (wire.Run, error) {
	var spec cloudSpec
	if err := decode(task.Spec, &spec); err != nil {
		return wire.Run{}, err
	}
	if err := checkCloud(spec); err != nil {
		return wire.Run{}, err
	}
	if e.Sandboxes.Isolation().Mode != memberinit.ModeNamespace {
		return wire.Run{}, wire.Errorf(wire.CodeCloudInitMissing, "members of this node have no namespaces, in which cloud-init could boot them")
	}
	var data []byte
	if spec.UserData != nil {
		data = []byte(*spec.UserData)
	} else {
		var err error
		if data, err = e.opener(task).unseal("userDataSealed", *spec.UserDataSealed); err != nil {
			return wire.Run{}, err
		}
	}
	if len(data) > maxUserData {
		return wire.Run{}, invalid("userData", "has %d bytes, at most %d are possible", len(data), maxUserData)
	}
	return wire.Run{
		Key: task.ID, Fence: task.Fence, Builtin: wire.BuiltinCloudInit, TimeoutMillis: task.Timeout.Milliseconds(),
		Stdin: encode(cloudinit.Request{InstanceID: spec.InstanceID, Hostname: spec.Hostname, UserData: data}),
	}, nil
}

func checkCloud(spec cloudSpec) error {
	switch {
	case (spec.UserData == nil) == (spec.UserDataSealed == nil):
		return invalid("userData", "exactly one of userData and userDataSealed must be given")
	case !processName.MatchString(spec.InstanceID):
		return invalid("instanceId", "%.80q is not a name: letters, digits, dot, dash, underscore, at most 64", spec.InstanceID)
	case spec.Hostname != "" && !hostForm.MatchString(spec.Hostname):
		return invalid("hostname", "%.80q is not a host name", spec.Hostname)
	}
	return nil
}

// cloudOutcome trusts what cloud-init says of itself. Without a word of it, it was killed.
func cloudOutcome(run wire.RunResult, task Task) journal.Outcome {
	var result cloudinit.Result
	told := json.Unmarshal(run.Stderr, &result) == nil && result.Status != ""
	if !told {
		result = cloudinit.Result{Code: wire.CodeCloudInitFailed, Status: "error", Errors: []string{}, Stages: []string{}}
	}
	result.Output = text.Clean(run.Stdout)
	state, message := StateSucceeded, ""
	switch {
	case run.Canceled:
		state, message = StateCanceled, "canceled"
	case run.TimedOut:
		state, message = StateTimedOut, fmt.Sprintf("killed after %s", task.Timeout)
	case !told:
		state, message = StateFailed, fmt.Sprintf("cloud-init was ended before it had a result, by exit code %d", run.ExitCode)
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
