package operation

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter/api"
	"github.com/gpuaas/app-platform/sdk/adapter/contract"
	"github.com/gpuaas/app-platform/sdk/adapter/internal/journal"
)

const (
	// lookLength is how many random characters distinguish the task of one [Run.Look] from another.
	lookLength = 12
	// forcedMargin is how much longer than a task's timeout a forced operation waits for it.
	forcedMargin = 5 * time.Second
)

// Do runs a node task on a member and waits for it. The step names it within the operation: the
// same step is the same task, also after a crash, and its details are kept from the first time.
// A task that did not succeed is a failure owned by the node.
func (r *Run) Do(ctx context.Context, member contract.Member, step string, task contract.NodeTask,
	options ...api.TaskOption) (contract.TaskResult, error) {
	result, err := r.Try(ctx, member, step, task, options...)
	if err == nil && result.State != contract.TaskSucceeded {
		err = api.TaskError(member, step, result)
	}
	return result, err
}

// Try is Do, but a task that did not succeed is a result and not an error.
//
// Under force no task is sent where [Run.Reaches] is false, and the wait for a task ends 5 seconds after
// its timeout; both end with a failure that [IsUnreachable] recognises.
func (r *Run) Try(ctx context.Context, member contract.Member, step string, task contract.NodeTask,
	options ...api.TaskOption) (contract.TaskResult, error) {
	if !r.Reaches(member) {
		return contract.TaskResult{}, nodeUnreachable(member, step)
	}
	spec, err := api.NewTaskSpec(r.key(member, step), task, options)
	if err != nil {
		return contract.TaskResult{}, err
	}
	if spec.Spec, err = r.journalled(spec.IdempotencyKey, spec.Spec); err != nil {
		return contract.TaskResult{}, err
	}
	return r.send(ctx, member, step, spec)
}

// Look is Try for a task that only reads: every call is a new task, and nothing is journalled. So it
// returns the present state, also after a crash. The task must change nothing.
func (r *Run) Look(ctx context.Context, member contract.Member, step string, task contract.NodeTask,
	options ...api.TaskOption) (contract.TaskResult, error) {
	if !r.Reaches(member) {
		return contract.TaskResult{}, nodeUnreachable(member, step)
	}
	spec, err := api.NewTaskSpec(r.key(member, step)+"."+rand.Text()[:lookLength], task, options)
	if err != nil {
		return contract.TaskResult{}, err
	}
	return r.send(ctx, member, step, spec)
}

func (r *Run) key(member contract.Member, step string) string {
	return fmt.Sprintf("%s.%d.%s.%s", r.dispatch.OperationID, r.generation, member.ID, step)
}

func (r *Run) send(ctx context.Context, member contract.Member, step string,
	spec contract.TaskSpec) (contract.TaskResult, error) {
	if r.dispatch.Force {
		return r.sendForced(ctx, member, step, spec)
	}
	result, err := r.client.Run(ctx, member.ID, spec)
	return result, api.PlatformFailure(step, err)
}

// sendForced gives up on a task after its timeout: its node may have become unreachable since the dispatch.
func (r *Run) sendForced(ctx context.Context, member contract.Member, step string,
	spec contract.TaskSpec) (contract.TaskResult, error) {
	bounded, cancel := context.WithTimeout(ctx, cmp.Or(spec.Timeout, api.DefaultTimeout)+forcedMargin)
	defer cancel()
	result, err := r.client.Run(bounded, member.ID, spec)
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		return result, nodeUnreachable(member, step)
	}
	return result, api.PlatformFailure(step, err)
}

func nodeUnreachable(member contract.Member, step string) error {
	return contract.Fail(contract.CodeNodeUnreachable, contract.OwnerNode, true,
		"step %s on member %s: node %s cannot be reached", step, member.ID, member.Node.Name)
}

// IsUnreachable reports whether a node task failed because its node cannot be reached.
func IsUnreachable(err error) bool {
	var failed contract.OperationError
	return errors.As(err, &failed) && failed.Code == contract.CodeNodeUnreachable
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
	return spec, r.record(journal.Record{Step: key, Spec: spec})
}
