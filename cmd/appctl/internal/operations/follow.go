// Package operations is what commands do about operations, the durable pieces of work that verbs begin: plan them and
// ask, begin them, follow them to their end, and the commands that list, show, cancel and retry them.
package operations

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

// WaitFlags are whether a command follows what it has begun to its end.
type WaitFlags struct {
	wait    bool
	timeout time.Duration
}

// Register adds the flags.
func (w *WaitFlags) Register(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&w.wait, "wait", false, "wait until the operation has ended; its failure is exit code 1")
	cmd.Flags().DurationVar(&w.timeout, "timeout", time.Hour,
		"stop waiting after this time (exit code 7); the operation continues")
}

// Started is what a command has begun.
type Started struct {
	// Operation is the work.
	Operation gql.Operation
	// JSON is the whole answer, for scripts that do not wait.
	JSON any
	// IDs are what --quiet writes; the operation's id if nil.
	IDs []string
	// What names the work for a person.
	What string
	// Ended returns the answer for callers that waited; the operation itself if nil.
	Ended func(context.Context, *gql.OperationDetail) (command.View, error)
}

// view shows what was begun, and how to follow it.
func (s Started) view() command.View {
	ids := s.IDs
	if ids == nil {
		ids = []string{s.Operation.Id}
	}
	return command.View{JSON: s.JSON, IDs: ids, Page: func(p *render.Page) {
		p.Line(fmt.Sprintf("%s: operation %s is %s", s.What, s.Operation.Id, s.Operation.State))
		p.Line("follow it with: appctl ops watch " + s.Operation.Id)
	}}
}

// ended shows what has ended.
func (s Started) ended(ctx context.Context, op *gql.OperationDetail) (command.View, error) {
	if s.Ended != nil {
		return s.Ended(ctx, op)
	}
	return EndedView("", nil, op), nil
}

// EndedView shows an operation that has ended, as JSON along with what it was about.
func EndedView(name string, about any, op *gql.OperationDetail) command.View {
	answer := map[string]any{"operation": op}
	if name != "" {
		answer[name] = about
	}
	return command.Detail(answer, op.Id, func(p *render.Page) { page(p, op) })
}

// Finish shows what was begun, or follows it to its end when --wait is given. An operation that ended badly is shown
// like one that ended well, and then is the command's error.
func Finish(ctx context.Context, t *command.Tool, wait WaitFlags, s Started) error {
	if !wait.wait {
		return t.Show(s.view())
	}
	op, err := follow(ctx, t, s.Operation.Id, wait.timeout, progress(t))
	if err != nil {
		return err
	}
	shown, err := s.ended(ctx, op)
	if err != nil {
		return err
	}
	if err := t.Show(shown); err != nil {
		return err
	}
	return failure(op, t.Paged())
}

// Ended follows an operation to its end and returns why it was not a good one.
func Ended(ctx context.Context, t *command.Tool, id string, timeout time.Duration) error {
	op, err := follow(ctx, t, id, timeout, progress(t))
	if err != nil {
		return err
	}
	return failure(op, false)
}

// An observer sees an operation change; done ends what it draws.
type observer struct {
	see  func(*gql.OperationDetail)
	done func()
	// stuck gets the first blocker of an operation that makes no progress; nil when no blocker is wanted.
	stuck func(*gql.Blocker)
}

// progress returns an observer that draws on standard error, so that standard output stays the answer.
func progress(t *command.Tool) observer {
	if t.Quiet || t.AsJSON() {
		return observer{see: func(*gql.OperationDetail) {}, done: func() {}}
	}
	bar := render.NewProgress(t.Env.Stderr, t.Env.StderrTerminal)
	return observer{
		done: bar.Done, stuck: func(blocker *gql.Blocker) { bar.Note(blockerText(blocker)) },
		see: func(op *gql.OperationDetail) { bar.Show(string(op.State), op.Percent, op.Phase, op.Message) },
	}
}

// blockerText returns a blocker on one line.
func blockerText(blocker *gql.Blocker) string {
	text := fmt.Sprintf("waits: %s (%s, %s, since %s", blocker.Message, blocker.Code, blocker.Owner,
		render.Time(&blocker.Since))
	if blocker.NextRetryAt != nil {
		text += ", next try " + render.Time(blocker.NextRetryAt)
	}
	if blocker.PermissionKey != "" {
		text += ", cleared with " + blocker.PermissionKey
	}
	return text + ")"
}

// follow waits for the end of an operation. A wait that its own timeout ends is an error of its own, as the operation
// goes on.
func follow(
	ctx context.Context, t *command.Tool, id string, timeout time.Duration, seen observer,
) (*gql.OperationDetail, error) {
	c, err := t.Connect()
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	defer seen.done()
	see, stop := whileStill(limited, t, id, seen)
	defer stop()
	op, err := c.WaitOperation(limited, id, see)
	passed := errors.Is(err, context.DeadlineExceeded) || errors.Is(limited.Err(), context.DeadlineExceeded)
	if ctx.Err() == nil && passed {
		return nil, &client.Error{
			Code: client.CodeDeadlineExceeded, Retryable: true,
			Message: fmt.Sprintf("operation %s has not ended after %s; it continues: appctl ops watch %s", id, timeout,
				id),
		}
	}
	return op, err
}

// failure returns the error of an operation that ended badly; nil when it ended well. It names the error's code alone
// where the page that was shown before has its message.
func failure(op *gql.OperationDetail, shown bool) error {
	if op.State == gql.OperationStateSucceeded {
		return nil
	}
	found := &client.Error{
		Code: client.CodeCanceled, Message: fmt.Sprintf("operation %s ended as %s", op.Id, op.State),
		CorrelationID: op.CorrelationId,
	}
	if op.Error != nil {
		found.Code, found.Retryable = op.Error.Code, op.Error.Retryable
		found.Message = fmt.Sprintf("operation %s ended as %s (%s): %s", op.Id, op.State, op.Error.Owner,
			op.Error.Message)
		if shown {
			found.Message = fmt.Sprintf("operation %s ended as %s (%s): the error is shown with the operation",
				op.Id, op.State, op.Error.Owner)
		}
	}
	return command.Failed(found)
}
