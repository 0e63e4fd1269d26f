package calls

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// cancel cancels a job. A job that has ended is not an error: the answer states that it was not canceled.
func cancel(ctx context.Context, call *adapter.Call) (any, error) {
	id, result, err := onJob(ctx, call, "cancel", "scancel", "--verbose")
	if err != nil {
		return nil, err
	}
	said := result.Stderr + result.Stdout
	switch {
	case strings.Contains(said, "Invalid job id"):
		return nil, noSuchJob(id)
	case strings.Contains(said, "already completing or completed"):
		return map[string]any{"jobId": id, "canceled": false}, nil
	case result.State != adapter.TaskSucceeded:
		return nil, unavailable(result)
	}
	return map[string]any{"jobId": id, "canceled": true}, nil
}

// verb returns the action that holds a job, releases it or queues it again, by scontrol. What Slurm refuses is told in
// its words.
func verb(name string) adapter.ActionFunc {
	return func(ctx context.Context, call *adapter.Call) (any, error) {
		id, result, err := onJob(ctx, call, name, "timeout", "20", "scontrol", name)
		if err != nil {
			return nil, err
		}
		switch {
		case strings.Contains(result.Stderr, "Invalid job id"):
			return nil, noSuchJob(id)
		case result.ExitCode != nil && *result.ExitCode == 1:
			return nil, adapter.Reject("JOB_STATE", "input.jobId", "job %s cannot be changed so now: %s", id, complaint(result))
		case result.State != adapter.TaskSucceeded:
			return nil, unavailable(result)
		}
		return map[string]any{"jobId": id}, nil
	}
}

// onJob runs a command on the controller, with the job's id as its last argument.
func onJob(
	ctx context.Context, call *adapter.Call, step string, command ...string,
) (id string, result adapter.TaskResult, err error) {
	var input struct{ JobID string }
	if err := json.Unmarshal(call.Input, &input); err != nil {
		return "", result, fmt.Errorf("read input: %w", err)
	}
	result, err = onController(ctx, call, step, adapter.RunCommand{Command: append(command, input.JobID)})
	return input.JobID, result, err
}

func noSuchJob(id string) error {
	return adapter.Reject("JOB_NOT_FOUND", "input.jobId", "there is no job %s", id)
}
