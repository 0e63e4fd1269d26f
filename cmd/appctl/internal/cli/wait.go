package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

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

// finish shows an operation that was started, or follows it to its end when --wait is given. started is the whole
// answer, for scripts.
func (t *tool) finish(ctx context.Context, c *client.Client, wait waitFlags, op gql.Operation, started any, what string) error {
	if !wait.wait {
		return t.show(view{json: started, ids: []string{op.Id}, page: func(p *render.Page) {
			p.Line(fmt.Sprintf("%s: operation %s is %s", what, op.Id, op.State))
			p.Line("follow it with: appctl ops watch " + op.Id)
		}})
	}
	ended, err := t.follow(ctx, c, op.Id, wait.timeout, t.progress())
	if err != nil {
		return err
	}
	if err := t.showOperation(ended); err != nil {
		return err
	}
	return failure(ended)
}

// observer sees an operation change; done ends what it draws.
type observer struct {
	see  func(*gql.OperationDetail)
	done func()
}

// progress draws on standard error, so that standard output stays the answer.
func (t *tool) progress() observer {
	if t.quiet || t.asJSON() {
		return observer{see: func(*gql.OperationDetail) {}, done: func() {}}
	}
	bar := render.NewProgress(t.env.Stderr, t.env.StderrTerminal)
	return observer{done: bar.Done, see: func(op *gql.OperationDetail) {
		bar.Show(string(op.State), op.Percent, op.Phase, op.Message)
	}}
}

// follow waits for the end of an operation.
func (t *tool) follow(ctx context.Context, c *client.Client, id string, timeout time.Duration, seen observer) (*gql.OperationDetail, error) {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	defer seen.done()
	op, err := c.WaitOperation(limited, id, seen.see)
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
		Code: client.CodeCanceled, Message: fmt.Sprintf("operation %s was %s", op.Id, op.State), CorrelationID: op.CorrelationId,
	}
	if op.Error != nil {
		found.Code, found.Retryable = op.Error.Code, op.Error.Retryable
		found.Message = fmt.Sprintf("operation %s was %s (%s): %s", op.Id, op.State, op.Error.Owner, op.Error.Message)
	}
	return failedError{found}
}
