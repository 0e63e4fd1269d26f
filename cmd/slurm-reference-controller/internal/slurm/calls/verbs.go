package calls

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/people"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// ofAny ends the name of an action on any person's job. It has a permission key of its own, that of operators: an
// adapter receives who the requester is, and not what they may.
const ofAny = ".any"

// right is whose jobs an action is for.
type right int

const (
	owner    right = iota // the requester's own; anybody's where requesters have no accounts
	operator              // anybody's
)

// cancel returns the action that cancels a job. A job that has ended is not an error: the answer states that it was not
// canceled.
func cancel(of right) adapter.ActionFunc {
	return func(ctx context.Context, call *adapter.Call) (any, error) {
		id, result, err := onJob(ctx, call, of, "cancel", "scancel", "--verbose")
		if err != nil {
			return nil, err
		}
		said := result.Stderr + result.Stdout
		switch {
		case strings.Contains(said, "Invalid job id"):
			return nil, noSuchJob(id)
		case strings.Contains(said, "already completing or completed"):
			return map[string]any{"jobId": id, "canceled": false}, nil
		case strings.Contains(said, denied):
			return nil, notChanged(ctx, call, of, "queue.cancel", id, result)
		case result.State != adapter.TaskSucceeded:
			return nil, unavailable(result)
		}
		return map[string]any{"jobId": id, "canceled": true}, nil
	}
}

// patiently runs scontrol on a job, and again while Slurm does not have the job in its accounting yet: for a moment
// after its submission, and after the controller has started.
const patiently = `while ! said=$(scontrol "$1" "$2" 2>&1); do
	case $said in
	*"try again in a bit"*) sleep 0.5 ;;
	*) printf '%s\n' "$said" >&2 && exit 1 ;;
	esac
done`

// verb returns the action that holds a job, releases it or queues it again, by scontrol. A refusal has Slurm's own
// text.
func verb(name string, of right) adapter.ActionFunc {
	return func(ctx context.Context, call *adapter.Call) (any, error) {
		id, result, err := onJob(ctx, call, of, name, "timeout", "20", "sh", "-c", patiently, "sh", name)
		if err != nil {
			return nil, err
		}
		switch {
		case strings.Contains(result.Stderr, "Invalid job id"):
			return nil, noSuchJob(id)
		case result.ExitCode != nil && *result.ExitCode == 1:
			return nil, notChanged(ctx, call, of, "queue."+name, id, result)
		case result.State != adapter.TaskSucceeded:
			return nil, unavailable(result)
		}
		return map[string]any{"jobId": id}, nil
	}
}

// onJob runs a command on the controller, with the job's id as its last argument: as the requester, so that Slurm
// itself decides whose the job is, or as an operator of the cluster.
func onJob(
	ctx context.Context, call *adapter.Call, of right, step string, command ...string,
) (id string, result adapter.TaskResult, err error) {
	var input struct{ JobID string }
	if err := json.Unmarshal(call.Input, &input); err != nil {
		return "", result, fmt.Errorf("read input: %w", err)
	}
	who, err := people.Of(call)
	if err != nil {
		return input.JobID, result, err
	}
	command = append(command, input.JobID)
	if who != nil && of == owner {
		command = who.As(command...)
	}
	result, err = onController(ctx, call, step, adapter.RunCommand{Command: command})
	return input.JobID, result, err
}

// denied is how Slurm says that a job is not the caller's to change.
const denied = "Access/permission denied"

// notChanged says why Slurm refused a change: the job is somebody else's, or is not in a state for it.
func notChanged(
	ctx context.Context, call *adapter.Call, of right, action, id string, result adapter.TaskResult,
) error {
	badState := adapter.Reject("JOB_STATE", "input.jobId", "job %s cannot be changed now: %s", id, complaint(result))
	who, err := people.Of(call)
	switch {
	case err != nil:
		return err
	case who == nil || of == operator:
		return badState
	}
	jobs, _, err := readJobs(ctx, call, id)
	if err != nil {
		return err
	}
	job, err := theJob(listing{JobID: id, Limit: 2}.filter(jobs), id)
	if err != nil {
		return err
	}
	if job.UID == who.UID {
		return badState
	}
	return notYours(action, job.JobID, job.User)
}

// notYours refuses an action on somebody else's job, and names the one that is for it.
func notYours(action, id, user string) error {
	return adapter.Reject("JOB_NOT_YOURS", "input.jobId",
		"job %s belongs to %s: use %s, which needs an operator's permission", id, user, action+ofAny)
}

func noSuchJob(id string) error {
	return adapter.Reject("JOB_NOT_FOUND", "input.jobId", "there is no job %s", id)
}
