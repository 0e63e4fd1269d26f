package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// waitFlags say whether a command follows what it has started to its end.
type waitFlags struct {
	wait    bool
	timeout time.Duration
}

func (w *waitFlags) register(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&w.wait, "wait", false, "wait until the operation has ended; its failure is exit code 1")
	cmd.Flags().DurationVar(&w.timeout, "timeout", time.Hour, "stop waiting after this time (exit code 7); the operation goes on")
}

// started is what a command has set off.
type started struct {
	operation gql.Operation
	// json is the whole answer, for scripts that do not wait.
	JSON any
	// ids are what --quiet writes.
	IDs []string
	// what names it for a person.
	what string
	// ended is the answer for those who waited.
	ended func(context.Context, *gql.OperationDetail) (view, error)
}

// finish shows what was started, or follows it to its end when --wait is given. An operation that ended badly is
// shown like one that ended well, and then is the command's error.
func (t *tool) finish(ctx context.Context, c *client.Client, wait waitFlags, s started) error {
	if !wait.wait {
		return t.show(view{JSON: s.JSON, IDs: s.IDs, Page: func(p *render.Page) {
			p.Line(fmt.Sprintf("%s: operation %s is %s", s.what, s.operation.Id, s.operation.State))
			p.Line("follow it with: appctl ops watch " + s.operation.Id)
		}})
	}
	op, err := t.follow(ctx, c, s.operation.Id, wait.timeout, t.progress())
	if err != nil {
		return err
	}
	shown, err := s.ended(ctx, op)
	if err != nil {
		return err
	}
	if err := t.show(shown); err != nil {
		return err
	}
	return failure(op)
}

// endedInstance shows an instance as its operation has left it.
func endedInstance(c *client.Client, instanceID string, ids ...string) func(context.Context, *gql.OperationDetail) (view, error) {
	return func(ctx context.Context, op *gql.OperationDetail) (view, error) {
		answer, err := gql.GetInstance(ctx, c, instanceID)
		if err != nil {
			return view{}, err
		}
		return view{
			JSON: map[string]any{"instance": answer.Instance, "operation": op}, IDs: ids,
			Page: func(p *render.Page) { pageInstance(p, &answer.Instance) },
		}, nil
	}
}

// observer sees an operation change; done ends what it draws.
type observer struct {
	see  func(*gql.OperationDetail)
	done func()
	// stuck is told the first blocker of an operation that stands still; nil for nobody who wants to know.
	stuck func(*gql.Blocker)
}

// progress draws on standard error, so that standard output stays the answer.
func (t *tool) progress() observer {
	if t.Quiet || t.AsJSON() {
		return observer{see: func(*gql.OperationDetail) {}, done: func() {}}
	}
	bar := render.NewProgress(t.Env.Stderr, t.Env.StderrTerminal)
	return observer{
		done: bar.Done, stuck: func(blocker *gql.Blocker) { bar.Note(blockerText(blocker)) },
		see: func(op *gql.OperationDetail) { bar.Show(string(op.State), op.Percent, op.Phase, op.Message) },
	}
}

// follow waits for the end of an operation.
func (t *tool) follow(ctx context.Context, c *client.Client, id string, timeout time.Duration, seen observer) (*gql.OperationDetail, error) {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	defer seen.done()
	see, stop := t.whileStill(limited, c, id, seen)
	defer stop()
	op, err := c.WaitOperation(limited, id, see)
	if ctx.Err() == nil && (errors.Is(err, context.DeadlineExceeded) || errors.Is(limited.Err(), context.DeadlineExceeded)) {
		return nil, &client.Error{
			Code: client.CodeDeadlineExceeded, Retryable: true,
			Message: fmt.Sprintf("operation %s has not ended after %s; it goes on: appctl ops watch %s", id, timeout, id),
		}
	}
	return op, err
}

// failure is the error of an operation that ended badly; nil when it ended well.
func failure(op *gql.OperationDetail) error {
	if op.State == gql.OperationStateSucceeded {
		return nil
	}
	found := &client.Error{
		Code: client.CodeCanceled, Message: fmt.Sprintf("operation %s ended as %s", op.Id, op.State), CorrelationID: op.CorrelationId,
	}
	if op.Error != nil {
		found.Code, found.Retryable = op.Error.Code, op.Error.Retryable
		found.Message = fmt.Sprintf("operation %s ended as %s (%s): %s", op.Id, op.State, op.Error.Owner, op.Error.Message)
	}
	return command.Failed(found)
}
