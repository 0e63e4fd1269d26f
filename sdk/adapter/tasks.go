package adapter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Tasks is how an adapter acts on the world: node tasks and reports, by the public API.
type Tasks interface {
	// Run asks for a node task in the sandbox of a member and waits until it has ended. The
	// result may be a failure of the task; the error is a failure to ask. Connection failures
	// and answers marked retryable are tried again until ctx ends.
	Run(ctx context.Context, memberID string, task TaskSpec) (TaskResult, error)
	// Report says how an operation goes. It is tried once: the platform also polls.
	Report(ctx context.Context, report Report) error
}

// Report is what an adapter says of an operation under way.
type Report struct {
	// OperationID and Attempt name the dispatch.
	OperationID string
	Attempt     int
	// Phase, Percent and Message are as in [Status].
	Phase   string
	Percent int
	Message string
	// Members are what it says of members.
	Members []MemberUpdate
}

const (
	// taskWait is how long one question after a task waits at the platform.
	taskWait = 20 * time.Second
	// maxReportMembers is the most members the public API takes in one report.
	maxReportMembers = 256
	// backoffFirst and backoffMax bound the pause between two tries.
	backoffFirst = 200 * time.Millisecond
	backoffMax   = 5 * time.Second
)

const (
	runTaskDoc    = `mutation RunNodeTask($input: RunNodeTaskInput!) { runNodeTask(input: $input) { ...t } }` + taskFields
	getTaskDoc    = `query NodeTask($id: ID!, $wait: Int!) { nodeTask(id: $id, waitSeconds: $wait) { ...t } }` + taskFields
	taskFields    = ` fragment t on NodeTask { id state message exitCode stdout stderr result }`
	cancelTaskDoc = `mutation CancelNodeTask($id: ID!) { cancelNodeTask(taskId: $id) { id } }`
	reportDoc     = `mutation ReportOperation($input: ReportOperationInput!) { reportOperation(input: $input) { id } }`
	renewDoc      = `mutation RenewOperationToken { renewOperationToken { token expiresAt } }`
)

// Run implements [Tasks].
func (c *Client) Run(ctx context.Context, memberID string, task TaskSpec) (TaskResult, error) {
	timeout := int(task.Timeout / time.Second)
	if timeout == 0 {
		timeout = 60
	}
	input := map[string]any{
		"memberId": memberID, "kind": task.Kind, "spec": task.Spec,
		"timeoutSeconds": timeout, "idempotencyKey": task.IdempotencyKey,
	}
	var made struct{ RunNodeTask TaskResult }
	if err := c.persist(ctx, runTaskDoc, map[string]any{"input": input}, &made); err != nil {
		return TaskResult{}, fmt.Errorf("run node task: %w", err)
	}
	result, err := c.await(ctx, made.RunNodeTask)
	if err != nil && !errors.Is(err, errStopping) {
		c.abandon(ctx, made.RunNodeTask.ID)
	}
	return result, err
}

// abandon asks the node to stop a task nobody waits for any more. Best effort: every task also
// has a timeout of its own.
func (c *Client) abandon(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), backoffMax)
	defer cancel()
	if err := c.Query(ctx, cancelTaskDoc, map[string]any{"id": id}, nil); err != nil {
		c.log.DebugContext(ctx, "node task not canceled", "task", id, "error", err)
	}
}

// await asks after a task until it has ended.
func (c *Client) await(ctx context.Context, task TaskResult) (TaskResult, error) {
	for !task.State.Ended() {
		var seen struct{ NodeTask TaskResult }
		variables := map[string]any{"id": task.ID, "wait": int(taskWait / time.Second)}
		asked := time.Now()
		if err := c.persist(ctx, getTaskDoc, variables, &seen); err != nil {
			return task, fmt.Errorf("await node task %s: %w", task.ID, err)
		}
		task = seen.NodeTask
		// A platform that answers without waiting must not be asked in a tight loop.
		if !task.State.Ended() && time.Since(asked) < backoffFirst {
			if err := pause(ctx, backoffFirst); err != nil {
				return task, err
			}
		}
	}
	return task.normalised(), nil
}

// normalised fills the output fields from the result object where the agent put them there.
func (r TaskResult) normalised() TaskResult {
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

func (c *Client) reportOnce(ctx context.Context, report Report, members []MemberUpdate) error {
	list := make([]map[string]any, len(members))
	for i, member := range members {
		list[i] = memberInput(member)
	}
	input := map[string]any{
		"operationId": report.OperationID, "attempt": report.Attempt, "phase": report.Phase,
		"percent": report.Percent, "message": clip(report.Message, 2000), "members": list,
	}
	return c.Query(ctx, reportDoc, map[string]any{"input": input}, nil)
}

// persist repeats a call until it succeeds, is refused for good, or ctx ends.
func (c *Client) persist(ctx context.Context, document string, variables map[string]any, out any) error {
	wait := backoffFirst
	for {
		err := c.Query(ctx, document, variables, out)
		if err == nil {
			return nil
		}
		var refused *PlatformError
		if errors.As(err, &refused) && !refused.Retryable {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		c.log.DebugContext(ctx, "the platform did not answer; trying again", "error", err, "wait", wait)
		if err := pause(ctx, wait); err != nil {
			return err
		}
		wait = min(2*wait, backoffMax)
	}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
