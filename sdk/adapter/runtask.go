package adapter

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/sdk/client"
)

const (
	// stderrTail is how much of a failed command's error output its failure quotes, in bytes.
	stderrTail = 800
	// lookLength is how many random characters tell one look from another.
	lookLength = 12
	// defaultTaskTimeout is how long a task may take that says nothing else.
	defaultTaskTimeout = time.Minute
	// forcedMargin is how much longer than that a forced operation waits for one.
	forcedMargin = 5 * time.Second
)

// Do runs a node task on a member and waits for it. The step names it within the operation: the
// same step is the same task, also after a crash, and its details are kept from the first time.
// A task that did not succeed is a failure owned by the node.
func (r *Run) Do(ctx context.Context, member Member, step string, task NodeTask, options ...TaskOption) (TaskResult, error) {
	result, err := r.Try(ctx, member, step, task, options...)
	if err == nil && result.State != TaskSucceeded {
		err = taskError(member, step, result)
	}
	return result, err
}

// Try is Do, but a task that did not succeed is a result and not an error.
//
// Under force a task is not asked for where [Run.Reaches] says no, and is waited for only a little
// longer than it may take; both end with a failure that [IsUnreachable] recognises.
func (r *Run) Try(ctx context.Context, member Member, step string, task NodeTask, options ...TaskOption) (TaskResult, error) {
	if !r.Reaches(member) {
		return TaskResult{}, nodeUnreachable(member, step)
	}
	spec, err := newTaskSpec(r.key(member, step), task, options)
	if err != nil {
		return TaskResult{}, err
	}
	if spec.Spec, err = r.journalled(spec.IdempotencyKey, spec.Spec); err != nil {
		return TaskResult{}, err
	}
	return r.send(ctx, member, step, spec)
}

// Look is Try for a task that only looks: every call is a new task, and nothing is journalled. What
// it answers is what is so now, also after a crash; it must change nothing.
func (r *Run) Look(ctx context.Context, member Member, step string, task NodeTask, options ...TaskOption) (TaskResult, error) {
	if !r.Reaches(member) {
		return TaskResult{}, nodeUnreachable(member, step)
	}
	spec, err := newTaskSpec(r.key(member, step)+"."+rand.Text()[:lookLength], task, options)
	if err != nil {
		return TaskResult{}, err
	}
	return r.send(ctx, member, step, spec)
}

func (r *Run) key(member Member, step string) string {
	return fmt.Sprintf("%s.%d.%s.%s", r.dispatch.OperationID, r.generation, member.ID, step)
}

func (r *Run) send(ctx context.Context, member Member, step string, spec TaskSpec) (TaskResult, error) {
	if r.dispatch.Force {
		return r.sendForced(ctx, member, step, spec)
	}
	result, err := r.client.Run(ctx, member.ID, spec)
	return result, platformFailure(step, err)
}

// sendForced gives up on a task when its time is over: its node may have gone after the dispatch.
func (r *Run) sendForced(ctx context.Context, member Member, step string, spec TaskSpec) (TaskResult, error) {
	bounded, cancel := context.WithTimeout(ctx, cmp.Or(spec.Timeout, defaultTaskTimeout)+forcedMargin)
	defer cancel()
	result, err := r.client.Run(bounded, member.ID, spec)
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		return result, nodeUnreachable(member, step)
	}
	return result, platformFailure(step, err)
}

func nodeUnreachable(member Member, step string) error {
	return Fail(CodeNodeUnreachable, OwnerNode, true, "step %s on member %s: node %s cannot be reached", step, member.ID, member.Node.Name)
}

// IsUnreachable says whether a node task failed because its node cannot be reached.
func IsUnreachable(err error) bool {
	var failed OperationError
	return errors.As(err, &failed) && failed.Code == CodeNodeUnreachable
}

// journalled keeps what a step sends before it is sent. A resumed step must send the same bytes,
// or the platform would refuse its key: sealing alone makes every rendering different.
func (r *Run) journalled(key string, spec json.RawMessage) (json.RawMessage, error) {
	r.op.mu.Lock()
	kept, ok := r.op.steps[key]
	r.op.mu.Unlock()
	if ok {
		return kept, nil
	}
	return spec, r.record(record{Step: key, Spec: spec})
}

// TaskOption changes how a node task is run.
type TaskOption func(*TaskSpec)

// Within bounds how long the task may take on the node, one second to one hour.
func Within(d time.Duration) TaskOption { return func(s *TaskSpec) { s.Timeout = d } }

func newTaskSpec(key string, task NodeTask, options []TaskOption) (TaskSpec, error) {
	raw, err := EncodeTask(task)
	if err != nil {
		return TaskSpec{}, fmt.Errorf("step %s: %w", key, err)
	}
	spec := TaskSpec{IdempotencyKey: key, Kind: task.TaskKind(), Spec: raw}
	for _, option := range options {
		option(&spec)
	}
	return spec, nil
}

func taskError(member Member, step string, result TaskResult) error {
	text := result.Message
	if tail := strings.TrimSpace(result.Stderr); tail != "" {
		text += ": " + tail[max(0, len(tail)-stderrTail):]
	}
	return Fail(CodeNodeTask, OwnerNode, true, "step %s on member %s ended %s: %s", step, member.ID, result.State, strings.ToValidUTF8(text, "?"))
}

// platformFailure gives a refusal of the public API its owner; other errors pass.
func platformFailure(step string, err error) error {
	refused, ok := client.AsError(err)
	if !ok {
		return err
	}
	return Fail(CodePlatform, OwnerPlatform, true, "step %s: %s %s", step, refused.Code, clip(refused.Message, MaxMessage))
}
