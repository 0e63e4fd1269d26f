package api

import (
	"fmt"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter/contract"
	"github.com/gpuaas/app-platform/sdk/adapter/internal/wire"
	"github.com/gpuaas/app-platform/sdk/client"
)

const (
	// stderrTail is how much of a failed command's error output its failure quotes, in bytes.
	stderrTail = 800
	// DefaultTimeout is the timeout of a task that sets none.
	DefaultTimeout = time.Minute
)

// TaskOption changes how a node task is run.
type TaskOption func(*contract.TaskSpec)

// Within bounds how long the task may take on the node, one second to one hour.
func Within(d time.Duration) TaskOption { return func(s *contract.TaskSpec) { s.Timeout = d } }

// NewTaskSpec returns a task with its details encoded and the options applied.
func NewTaskSpec(key string, task contract.NodeTask, options []TaskOption) (contract.TaskSpec, error) {
	raw, err := contract.EncodeTask(task)
	if err != nil {
		return contract.TaskSpec{}, fmt.Errorf("step %s: %w", key, err)
	}
	spec := contract.TaskSpec{IdempotencyKey: key, Kind: task.TaskKind(), Spec: raw}
	for _, option := range options {
		option(&spec)
	}
	return spec, nil
}

// TaskError returns the failure, owned by the node, for a task that did not succeed.
func TaskError(member contract.Member, step string, result contract.TaskResult) error {
	text := result.Message
	if tail := strings.TrimSpace(result.Stderr); tail != "" {
		text += ": " + tail[max(0, len(tail)-stderrTail):]
	}
	return contract.Fail(contract.CodeNodeTask, contract.OwnerNode, true, "step %s on member %s ended %s: %s", step,
		member.ID, result.State, strings.ToValidUTF8(text, "?"))
}

// PlatformFailure gives a refusal of the public API its owner; other errors pass.
func PlatformFailure(step string, err error) error {
	refused, ok := client.AsError(err)
	if !ok {
		return err
	}
	return contract.Fail(contract.CodePlatform, contract.OwnerPlatform, true, "step %s: %s %s", step, refused.Code,
		wire.Clip(refused.Message, contract.MaxMessage))
}
