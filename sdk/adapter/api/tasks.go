package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter/contract"
	"github.com/gpuaas/app-platform/sdk/adapter/internal/wire"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// Tasks is how an adapter acts on the world: node tasks and reports, by the public API.
type Tasks interface {
	// Run requests a node task in the sandbox of a member and waits until it has ended. A task
	// that fails is a result; the error means that the platform could not be reached or refused.
	// Connection failures and answers marked retryable are tried again until ctx ends.
	Run(ctx context.Context, memberID string, task contract.TaskSpec) (contract.TaskResult, error)
	// Report sends the progress of an operation. It is tried once: the platform also polls.
	Report(ctx context.Context, report Report) error
}

// Report is what an adapter reports about an operation under way.
type Report struct {
	// OperationID and Attempt name the dispatch.
	OperationID string
	Attempt     int
	// Phase, Percent and Message are as in [contract.Status].
	Phase   string
	Percent int
	Message string
	// Members are the members whose state is reported.
	Members []contract.MemberUpdate
}

const (
	// taskWait is how long one poll of a task waits at the platform.
	taskWait = 20 * time.Second
	// maxReportMembers is the most members the public API takes in one report.
	maxReportMembers = 256
	// backoffFirst and backoffMax bound the pause between two tries.
	backoffFirst = 200 * time.Millisecond
	backoffMax   = 5 * time.Second
)

// Run implements [Tasks].
func (c *Client) Run(ctx context.Context, memberID string, task contract.TaskSpec) (contract.TaskResult, error) {
	timeout := int(cmp.Or(task.Timeout, DefaultTimeout) / time.Second)
	input := gql.RunNodeTaskInput{
		MemberId: memberID, Kind: gql.NodeTaskKind(task.Kind), Spec: task.Spec,
		TimeoutSeconds: timeout, IdempotencyKey: task.IdempotencyKey,
	}
	if ctx.Err() != nil {
		return contract.TaskResult{}, fmt.Errorf("run node task: %w", context.Cause(ctx))
	}
	made, err := persist(ctx, c, func() (*gql.RunNodeTaskResponse, error) { return c.order(ctx, input) })
	if err != nil {
		return contract.TaskResult{}, fmt.Errorf("run node task: %w", err)
	}
	result, err := c.await(ctx, resultOf(made.RunNodeTask))
	if err != nil && !errors.Is(err, ErrStopping) {
		c.abandon(ctx, made.RunNodeTask.Id)
	}
	return result, err
}

// order creates a task. The request is not cut off when ctx ends: the platform may have created the
// task, and without the answer its id is unknown, so that it would run on after its operation.
func (c *Client) order(ctx context.Context, input gql.RunNodeTaskInput) (*gql.RunNodeTaskResponse, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	return gql.RunNodeTask(ctx, c, input)
}

// abandon cancels a task that no caller waits for any more. It is best effort: every task also
// has a timeout of its own.
func (c *Client) abandon(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), backoffMax)
	defer cancel()
	if _, err := gql.CancelNodeTask(ctx, c, id); err != nil {
		c.log.DebugContext(ctx, "node task not canceled", "task", id, "error", err)
	}
}

// await polls a task until it has ended.
func (c *Client) await(ctx context.Context, task contract.TaskResult) (contract.TaskResult, error) {
	for !task.State.Ended() {
		asked := time.Now()
		seen, err := persist(ctx, c, func() (*gql.GetNodeTaskResponse, error) {
			return gql.GetNodeTask(ctx, c, task.ID, int(taskWait/time.Second))
		})
		if err != nil {
			return task, fmt.Errorf("await node task %s: %w", task.ID, err)
		}
		task = resultOf(seen.NodeTask)
		// A platform that answers without waiting must not be polled in a tight loop.
		if !task.State.Ended() && time.Since(asked) < backoffFirst {
			if err := wire.Pause(ctx, backoffFirst); err != nil {
				return task, err
			}
		}
	}
	return normalised(task), nil
}

func resultOf(task gql.NodeTask) contract.TaskResult {
	return contract.TaskResult{
		ID: task.Id, State: contract.TaskState(task.State), Message: task.Message,
		ExitCode: task.ExitCode, Stdout: task.Stdout, Stderr: task.Stderr, Raw: task.Result,
	}
}

// normalised fills the output fields from the result object where the agent put them there.
func normalised(r contract.TaskResult) contract.TaskResult {
	var body struct {
		ExitCode  *int   `json:"exitCode"`
		Stdout    string `json:"stdout"`
		Stderr    string `json:"stderr"`
		Truncated bool   `json:"truncated"`
	}
	if json.Unmarshal(r.Raw, &body) != nil {
		return r
	}
	if r.ExitCode == nil {
		r.ExitCode = body.ExitCode
	}
	if r.Stdout == "" {
		r.Stdout = body.Stdout
	}
	if r.Stderr == "" {
		r.Stderr = body.Stderr
	}
	r.Truncated = body.Truncated
	return r
}

// Report implements [Tasks]. More members than the API takes at once go in several reports.
func (c *Client) Report(ctx context.Context, report Report) error {
	members := report.Members
	for {
		n := min(len(members), maxReportMembers)
		if err := c.reportOnce(ctx, report, members[:n]); err != nil {
			return fmt.Errorf("report operation: %w", err)
		}
		if members = members[n:]; len(members) == 0 {
			return nil
		}
	}
}

func (c *Client) reportOnce(ctx context.Context, report Report, members []contract.MemberUpdate) error {
	list := make([]gql.MemberReportInput, len(members))
	for i, member := range members {
		list[i] = memberInput(member)
	}
	_, err := gql.ReportOperation(ctx, c, gql.ReportOperationInput{
		OperationId: report.OperationID, Attempt: report.Attempt, Phase: report.Phase,
		Percent: &report.Percent, Message: wire.Clip(report.Message, 2000), Members: list,
	})
	return err
}

// memberInput is a member update as the public API takes it: its enums are upper case.
func memberInput(member contract.MemberUpdate) gql.MemberReportInput {
	input := gql.MemberReportInput{
		Id: member.ID, Status: gql.MemberStatus(strings.ToUpper(string(member.Status))),
		Health: gql.Health(strings.ToUpper(string(member.Health))),
	}
	if !wire.IsNull(member.Detail) {
		input.Detail = member.Detail
	}
	return input
}

// persist repeats a call until it succeeds, is refused for good, or ctx ends.
func persist[T any](ctx context.Context, c *Client, call func() (T, error)) (T, error) {
	var none T
	wait := backoffFirst
	for {
		answer, err := call()
		if err == nil {
			return answer, nil
		}
		refused, typed := client.AsError(err)
		switch {
		case typed && !passing(refused):
			return none, err
		case ctx.Err() != nil:
			return none, context.Cause(ctx)
		case !typed: // it was never sent, and the same call will not be either
			return none, err
		}
		c.log.DebugContext(ctx, "the platform did not answer; trying again", "error", err, "wait", wait)
		if err := wire.Pause(ctx, wait); err != nil {
			return none, err
		}
		wait = min(2*wait, backoffMax)
	}
}

// passing reports whether the same call may succeed later: the platform marks the error as retryable,
// or the status is one that a proxy in between may have answered.
func passing(err *client.Error) bool {
	return err.Retryable || err.HTTPStatus == http.StatusTooManyRequests ||
		err.HTTPStatus >= http.StatusInternalServerError
}

// ErrStopping is the cause of a run's context when the kit stops; the run resumes at the next start.
var ErrStopping = errors.New("the adapter is stopping")
