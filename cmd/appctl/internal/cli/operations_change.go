package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

func (t *tool) opsWait() *cobra.Command {
	var timeout time.Duration
	wait := t.command("wait OPERATION", "Wait for an operation's end and show it; exit code 1 if it fails", cobra.ExactArgs(1),
		func(ctx context.Context, args []string) error {
			c, err := t.connect()
			if err != nil {
				return err
			}
			op, err := t.follow(ctx, c, args[0], timeout, t.progress())
			if err != nil {
				return err
			}
			if err := t.showOperation(op); err != nil {
				return err
			}
			return failure(op)
		})
	wait.Flags().DurationVar(&timeout, "timeout", time.Hour, "stop waiting after this time (exit code 7)")
	return wait
}

func (t *tool) cancelOp() *cobra.Command {
	var input gql.CancelOperationInput
	var wait waitFlags
	cancel := t.command("cancel OPERATION", "Ask an operation to stop, if that is still safe", cobra.ExactArgs(1),
		func(ctx context.Context, args []string) error {
			c, err := t.connect()
			if err != nil {
				return err
			}
			input.OperationId = args[0]
			answer, err := gql.CancelOperation(ctx, c, input)
			if err != nil {
				return err
			}
			return t.canceled(ctx, c, wait, answer.CancelOperation)
		})
	cancel.Long = `Ask an operation to stop, if that is still safe. Its app says whether it is: until then the operation is CANCELING, and
one that it is too late to stop goes on. A teardown and a release cannot be stopped. With --wait, CANCELED is success.`
	cancel.Flags().StringVar(&input.Reason, "reason", "", "why, kept in the audit")
	wait.register(cancel)
	return cancel
}

// canceled shows what was asked for, or waits and says whether the operation was canceled.
func (t *tool) canceled(ctx context.Context, c *client.Client, wait waitFlags, made gql.Cancellation) error {
	if !wait.wait {
		return t.finish(ctx, c, wait, started{
			operation: made.Operation, JSON: made, IDs: []string{made.Operation.Id}, what: "cancel of " + string(made.Operation.Kind),
		})
	}
	op, err := t.follow(ctx, c, made.Operation.Id, wait.timeout, t.progress())
	if err != nil {
		return err
	}
	if err := t.showOperation(op); err != nil {
		return err
	}
	if op.State == gql.OperationStateCanceled {
		return nil
	}
	return command.Failed(&client.Error{
		Code: client.CodeFailedPrecondition, CorrelationID: op.CorrelationId,
		Message: fmt.Sprintf("operation %s was not canceled, it ended as %s: %s", op.Id, op.State, firstOf(op.CancelMessage, "it was too late")),
	})
}

func (t *tool) retryOp() *cobra.Command {
	var f changeFlags
	retry := t.command("retry OPERATION", "Ask again for what an operation did not come to", cobra.ExactArgs(1),
		func(ctx context.Context, args []string) error {
			deadline, err := seconds(f.deadline)
			if err != nil {
				return err
			}
			c, err := t.connect()
			if err != nil {
				return err
			}
			input := gql.RetryOperationInput{OperationId: args[0], Reason: f.reason, IdempotencyKey: key(f.key)}
			if deadline != 0 {
				input.DeadlineSeconds = &deadline
			}
			answer, err := gql.RetryOperation(ctx, c, input)
			if err != nil {
				return err
			}
			made := answer.RetryOperation
			return t.finish(ctx, c, f.wait, started{
				operation: made.Operation, JSON: made, IDs: []string{made.Operation.Id}, what: fmt.Sprintf("%s again", made.Operation.Kind),
				ended: endedOperation,
			})
		})
	f.register(retry, "as long as the first time")
	return retry
}

// endedOperation shows the operation itself.
func endedOperation(_ context.Context, op *gql.OperationDetail) (view, error) {
	return view{JSON: map[string]any{"operation": op}, IDs: []string{op.Id}, Page: func(p *render.Page) { pageOperation(p, op) }}, nil
}

var blockerHeading = []string{"CODE", "WHOSE", "ABOUT", "SINCE", "NEXT TRY", "CLEARED WITH", "MESSAGE"}

func blockerRows(blockers []gql.Blocker) [][]string {
	var rows [][]string
	for _, blocker := range blockers {
		rows = append(rows, []string{
			blocker.Code, blocker.Owner, blocker.Subject, render.Time(&blocker.Since), render.Time(blocker.NextRetryAt), blocker.PermissionKey, blocker.Message,
		})
	}
	return rows
}

// blockerText is a blocker on one line.
func blockerText(blocker *gql.Blocker) string {
	text := fmt.Sprintf("waits: %s (%s, %s, since %s", blocker.Message, blocker.Code, blocker.Owner, render.Time(&blocker.Since))
	if blocker.NextRetryAt != nil {
		text += ", next try " + render.Time(blocker.NextRetryAt)
	}
	if blocker.PermissionKey != "" {
		text += ", cleared with " + blocker.PermissionKey
	}
	return text + ")"
}
