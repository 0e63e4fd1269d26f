package operations

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/lookup"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// Command returns the commands about operations.
func Command(t *command.Tool) *cobra.Command {
	ops := command.Group("ops", "Operations: durable pieces of work", list(t), show(t), watch(t), wait(t), cancel(t),
		retry(t))
	ops.Aliases = []string{"operations"}
	return ops
}

func show(t *command.Tool) *cobra.Command {
	return command.Verb(t, "show OPERATION", "Show an operation with its steps, evidence and cost", viewWithCost,
		func(ctx context.Context, args []string) (*gql.ShowOperationOperation, error) {
			answer, err := gql.ShowOperation(ctx, t, args[0])
			return &answer.Operation, err
		})
}

// list returns the command that lists operations, of the project or of one instance.
func list(t *command.Tool) *cobra.Command {
	var states []string
	var instance string
	cmd := command.List(t, "list", "List the project's operations, newest first", table,
		func(ctx context.Context, _ []string, limit int) ([]gql.Operation, error) {
			wanted, err := command.Enums("state", states, gql.AllOperationState)
			if err != nil {
				return nil, err
			}
			if instance != "" {
				return ofInstance(ctx, t, instance, limit)
			}
			project, err := t.ProjectID(ctx)
			if err != nil {
				return nil, err
			}
			return command.All[gql.Operation](limit, func(first int, after string) (*gql.OperationPage, error) {
				answer, err := gql.ListOperations(ctx, t, project, wanted, first, after)
				return &answer.Operations, err
			})
		})
	cmd.Flags().StringSliceVar(&states, "state", nil, "only these states, such as running")
	cmd.Flags().StringVar(&instance, "instance", "", "only those of this instance, by id or name")
	cmd.MarkFlagsMutuallyExclusive("state", "instance")
	return cmd
}

func ofInstance(ctx context.Context, t *command.Tool, given string, limit int) ([]gql.Operation, error) {
	id, err := lookup.Instance(ctx, t, given)
	if err != nil {
		return nil, err
	}
	return command.All[gql.Operation](limit, func(first int, after string) (*gql.OperationPage, error) {
		answer, err := gql.ListInstanceOperations(ctx, t, id, first, after)
		return &answer.Instance.Operations, err
	})
}

// watch follows an operation; with -o json each change is a line on standard output.
func watch(t *command.Tool) *cobra.Command {
	var timeout time.Duration
	cmd := t.Command("watch OPERATION", "Follow an operation to its end; exit code 1 if it fails",
		func(ctx context.Context, args []string) error {
			seen := progress(t)
			if t.AsJSON() {
				seen.see = func(op *gql.OperationDetail) { _ = render.JSONLine(t.Env.Stdout, op) }
			}
			op, err := follow(ctx, t, args[0], timeout, seen)
			if err != nil {
				return err
			}
			if t.AsJSON() {
				return failure(op, false)
			}
			return showEnd(t, op)
		})
	cmd.Flags().DurationVar(&timeout, "timeout", time.Hour, "stop watching after this time (exit code 7)")
	return cmd
}

// showEnd shows an operation that has ended; one that ended badly is the command's error too.
func showEnd(t *command.Tool, op *gql.OperationDetail) error {
	if err := t.Show(view(op)); err != nil {
		return err
	}
	return failure(op, t.Paged())
}

// wait returns the command that shows an operation once it has ended, and nothing before.
func wait(t *command.Tool) *cobra.Command {
	var timeout time.Duration
	cmd := t.Command("wait OPERATION", "Wait for an operation's end and show it; exit code 1 if it fails",
		func(ctx context.Context, args []string) error {
			op, err := follow(ctx, t, args[0], timeout, progress(t))
			if err != nil {
				return err
			}
			return showEnd(t, op)
		})
	cmd.Flags().DurationVar(&timeout, "timeout", time.Hour, "stop waiting after this time (exit code 7)")
	return cmd
}

// cancel returns the command that requests an operation's end. Whether it can still be ended is the app's decision.
func cancel(t *command.Tool) *cobra.Command {
	var input gql.CancelOperationInput
	var wait WaitFlags
	cmd := t.Command("cancel OPERATION", "Request that an operation stops, if that is still safe",
		func(ctx context.Context, args []string) error {
			input.OperationId = args[0]
			answer, err := gql.CancelOperation(ctx, t, input)
			if err != nil {
				return err
			}
			return canceled(ctx, t, wait, answer.CancelOperation)
		})
	cmd.Long = `Request that an operation stops, if that is still safe. Its app decides whether it is: until then the
operation is CANCELING, and one that can no longer be stopped goes on. A teardown and a release cannot be stopped. With
--wait, CANCELED is success.`
	command.ReasonFlag(cmd, &input.Reason)
	wait.Register(cmd)
	return cmd
}

// canceled shows the request, or waits and shows whether the operation was canceled.
func canceled(ctx context.Context, t *command.Tool, wait WaitFlags, made gql.Cancellation) error {
	if !wait.wait {
		return t.Show(Started{Operation: made.Operation, JSON: made,
			What: "cancel of " + string(made.Operation.Kind)}.view())
	}
	op, err := follow(ctx, t, made.Operation.Id, wait.timeout, progress(t))
	if err != nil {
		return err
	}
	if err := t.Show(view(op)); err != nil || op.State == gql.OperationStateCanceled {
		return err
	}
	return command.Failed(&client.Error{
		Code: client.CodeFailedPrecondition, CorrelationID: op.CorrelationId,
		Message: fmt.Sprintf("operation %s was not canceled, it ended as %s: %s", op.Id, op.State,
			cmp.Or(op.CancelMessage, "it was too late")),
	})
}

// retry returns the command that begins an operation's work again, as a new operation.
func retry(t *command.Tool) *cobra.Command {
	var f ChangeFlags
	cmd := t.Command("retry OPERATION", "Retry the work of an operation that did not succeed",
		func(ctx context.Context, args []string) error {
			deadline, err := f.Deadline()
			if err != nil {
				return err
			}
			return f.Apply(ctx, t, Change{
				Plan: func(ctx context.Context) (*gql.Plan, error) {
					answer, err := gql.PlanRetryOperation(ctx, t, gql.PlanRetryOperationInput{
						OperationId: args[0], DeadlineSeconds: command.Given(deadline)})
					return &answer.PlanRetryOperation, err
				},
				Send: func(ctx context.Context, hash string) (Started, error) {
					answer, err := gql.RetryOperation(ctx, t, gql.RetryOperationInput{
						OperationId: args[0], DeadlineSeconds: command.Given(deadline), PlanHash: hash,
						Reason:         f.Reason,
						IdempotencyKey: f.Key,
					})
					made := answer.RetryOperation
					return Started{Operation: made.Operation, JSON: made,
						What: fmt.Sprintf("%s again", made.Operation.Kind)}, err
				},
			})
		})
	f.Lenient = true // a retry is what was agreed to once
	f.Register(cmd, "as long as the first time")
	f.RegisterPlan(cmd)
	return cmd
}
