package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

func (t *tool) opsCommand() *cobra.Command {
	show := t.command("show OPERATION", "Show an operation with its steps and evidence", cobra.ExactArgs(1),
		func(ctx context.Context, args []string) error {
			c, err := t.connect()
			if err != nil {
				return err
			}
			answer, err := gql.GetOperation(ctx, c, args[0])
			if err != nil {
				return err
			}
			return t.showOperation(&answer.Operation)
		})
	var timeout time.Duration
	watch := t.command("watch OPERATION", "Follow an operation to its end; exit code 1 if it fails", cobra.ExactArgs(1),
		func(ctx context.Context, args []string) error { return t.watch(ctx, args[0], timeout) })
	watch.Flags().DurationVar(&timeout, "timeout", time.Hour, "stop watching after this time (exit code 7)")
	ops := group("ops", "Operations: durable pieces of work", t.opsList(), show, watch, t.opsWait(), t.cancelOp(), t.retryOp())
	ops.Aliases = []string{"operations"}
	return ops
}

func (t *tool) opsList() *cobra.Command {
	var states []string
	var instance string
	var limit int
	list := t.command("list", "List the project's operations, newest first", cobra.NoArgs, func(ctx context.Context, _ []string) error {
		wanted, err := enums("state", states, gql.AllOperationState)
		if err != nil {
			return err
		}
		c, err := t.connect()
		if err != nil {
			return err
		}
		if instance != "" {
			return t.listInstanceOperations(ctx, c, instance, limit)
		}
		project, err := t.projectID(ctx, c)
		if err != nil {
			return err
		}
		return t.listOperations(limit, func(first int, after string) (*gql.OperationPage, error) {
			answer, err := gql.ListOperations(ctx, c, project, wanted, first, after)
			if err != nil {
				return nil, err
			}
			return &answer.Operations, nil
		})
	})
	list.Flags().StringSliceVar(&states, "state", nil, "only these states, such as running")
	list.Flags().StringVar(&instance, "instance", "", "only those of this instance, by id or name")
	list.MarkFlagsMutuallyExclusive("state", "instance")
	limitFlag(list, &limit)
	return list
}

func (t *tool) listInstanceOperations(ctx context.Context, c *client.Client, instance string, limit int) error {
	id, err := t.instanceID(ctx, c, instance)
	if err != nil {
		return err
	}
	return t.listOperations(limit, func(first int, after string) (*gql.OperationPage, error) {
		answer, err := gql.ListInstanceOperations(ctx, c, id, first, after)
		if err != nil {
			return nil, err
		}
		return &answer.Instance.Operations, nil
	})
}

func (t *tool) listOperations(limit int, fetch func(int, string) (*gql.OperationPage, error)) error {
	found, err := collect[gql.Operation](client.All[gql.Operation](limit, fetch))
	if err != nil {
		return err
	}
	var rows [][]string
	var ids []string
	for _, op := range found {
		target := firstOf(render.Text(op.InstanceId), render.Text(op.AllocationId))
		rows = append(rows, []string{op.Id, string(op.Kind), string(op.State), fmt.Sprintf("%d%%", op.Percent), target, render.Time(&op.CreatedAt)})
		ids = append(ids, op.Id)
	}
	return t.show(view{JSON: found, IDs: ids, Page: func(p *render.Page) {
		p.Table([]string{"ID", "KIND", "STATE", "DONE", "TARGET", "CREATED"}, rows)
	}})
}

// watch follows an operation; with -o json each change is a line on standard output.
func (t *tool) watch(ctx context.Context, id string, timeout time.Duration) error {
	c, err := t.connect()
	if err != nil {
		return err
	}
	seen := t.progress()
	if t.AsJSON() {
		seen.see = func(op *gql.OperationDetail) { _ = render.JSONLine(t.Env.Stdout, op) }
	}
	ended, err := t.follow(ctx, c, id, timeout, seen)
	if err != nil {
		return err
	}
	if !t.AsJSON() {
		if err := t.showOperation(ended); err != nil {
			return err
		}
	}
	return failure(ended)
}

func (t *tool) showOperation(op *gql.OperationDetail) error {
	return t.show(view{JSON: op, IDs: []string{op.Id}, Page: func(p *render.Page) { pageOperation(p, op) }})
}

func pageOperation(p *render.Page, op *gql.OperationDetail) {
	outcome, problem := "", ""
	if op.Outcome != nil {
		outcome = string(*op.Outcome)
	}
	if op.Error != nil {
		problem = fmt.Sprintf("%s (%s): %s", op.Error.Code, op.Error.Owner, op.Error.Message)
	}
	p.Fields("Operation", op.Id, "Kind", string(op.Kind), "State", fmt.Sprintf("%s, %d%%", op.State, op.Percent), "Outcome", outcome,
		"Phase", op.Phase, "Message", op.Message, "Error", problem, "Instance", render.Text(op.InstanceId),
		"Members", strings.Join(op.TargetIds, ", "), "Allocation", render.Text(op.AllocationId), "Requester", op.Requester.Name,
		"Reason", op.Reason, "Again for", render.Text(op.RetryOf), "Force", forceText(op), "Cancel", cancelText(op),
		"Correlation id", op.CorrelationId, "Created", render.Time(&op.CreatedAt), "Started", render.Time(op.StartedAt),
		"Ended", render.Time(op.EndedAt), "Deadline", render.Time(&op.Deadline))
	if len(op.Blockers) > 0 {
		p.Section("What it waits for")
		p.Table(blockerHeading, blockerRows(op.Blockers))
	}
	if len(op.WaitsFor) > 0 {
		p.Section("Work that it waits for")
		p.Table(workHeading, workRows(op.WaitsFor))
	}
	var rows [][]string
	for _, step := range op.Steps {
		rows = append(rows, []string{step.Name, string(step.State), fmt.Sprint(step.Attempt), step.Message})
	}
	p.Section("Steps")
	p.Table([]string{"STEP", "STATE", "TRIES", "MESSAGE"}, rows)
	if evidence := jsonText(op.Evidence); evidence != "" {
		p.Section("Evidence")
		p.Line(evidence)
	}
}

// forceText says whether and when an operation may lose work.
func forceText(op *gql.OperationDetail) string {
	switch {
	case op.ForcedAt != nil:
		return "since " + render.Time(op.ForcedAt) + ", when its deadline passed"
	case op.Force:
		return "from the start"
	case op.OnDeadline == gql.DeadlineOutcomeForce && !client.Ended(op.State):
		return "once its deadline passes"
	default:
		return ""
	}
}

func cancelText(op *gql.OperationDetail) string {
	if op.CancelRequestedAt == nil {
		return ""
	}
	return joined(": ", "asked for "+render.Time(op.CancelRequestedAt)+" by "+op.CancelRequester, op.CancelMessage)
}
