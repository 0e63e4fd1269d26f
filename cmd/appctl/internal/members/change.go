package members

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/operations"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// verb returns a command about one member; run gets its id and the deadline in whole seconds.
func verb(
	t *command.Tool, f *operations.ChangeFlags, use, short string,
	run func(ctx context.Context, id string, deadline int) error,
) *cobra.Command {
	cmd := t.Command(use, short, func(ctx context.Context, args []string) error {
		deadline, err := f.Deadline()
		if err != nil {
			return err
		}
		id, err := find(ctx, t, args[0])
		if err != nil {
			return err
		}
		return run(ctx, id, deadline)
	})
	cmd.Long = short + ".\n\n" + help
	return cmd
}

// changed is the work on a member that a verb has begun.
func changed(t *command.Tool, what string, made *gql.MemberChange) operations.Started {
	return operations.Started{
		Operation: made.Operation, JSON: made, What: fmt.Sprintf("%s of %s (%s)", what, name(&made.Member),
			made.Member.Id),
		Ended: ended(t, made.Member.Id),
	}
}

// ended returns what shows a member as its operation has left it.
func ended(t *command.Tool, id string) func(context.Context, *gql.OperationDetail) (command.View, error) {
	return func(ctx context.Context, op *gql.OperationDetail) (command.View, error) {
		answer, err := gql.GetMember(ctx, t, id)
		if err != nil {
			return command.View{}, err
		}
		shown := operations.EndedView("member", answer.Member, op)
		shown.Page = func(p *render.Page) { page(p, &answer.Member) }
		return shown, nil
	}
}

// An exit is a verb by which a member stops: it is planned, may be forced, and has a deadline.
type exit struct {
	use, short, what string
	plan             func(context.Context, gql.PlanMemberInput) (*gql.Plan, error)
	send             func(context.Context, gql.DrainMemberInput) (*gql.MemberChange, error)
}

// command returns the verb's command.
func (e exit) command(t *command.Tool) *cobra.Command {
	var f operations.ChangeFlags
	cmd := verb(t, &f, e.use, e.short, func(ctx context.Context, id string, deadline int) error {
		outcome, err := f.Outcome()
		if err != nil {
			return err
		}
		return f.Apply(ctx, t, operations.Change{
			Plan: func(ctx context.Context) (*gql.Plan, error) {
				return e.plan(ctx, gql.PlanMemberInput{
					MemberId: id, Force: f.Force, DeadlineSeconds: deadline, OnDeadline: outcome,
				})
			},
			Send: func(ctx context.Context, hash string) (operations.Started, error) {
				made, err := e.send(ctx, gql.DrainMemberInput{
					MemberId: id, Force: f.Force, DeadlineSeconds: deadline, OnDeadline: outcome, PlanHash: hash,
					Reason: f.Reason, IdempotencyKey: f.Key,
				})
				return changed(t, e.what, made), err
			},
		})
	})
	f.Register(cmd, "1h")
	f.RegisterForce(cmd)
	f.RegisterPlan(cmd)
	return cmd
}

// drain returns the command that lets a member end its work and keeps it.
func drain(t *command.Tool) *cobra.Command {
	return exit{
		use: "drain MEMBER", short: "Let a member finish its work and take no new work; it stays", what: "drain",
		plan: func(ctx context.Context, input gql.PlanMemberInput) (*gql.Plan, error) {
			answer, err := gql.PlanDrainMember(ctx, t, input)
			return &answer.PlanDrainMember, err
		},
		send: func(ctx context.Context, input gql.DrainMemberInput) (*gql.MemberChange, error) {
			answer, err := gql.DrainMember(ctx, t, input)
			return &answer.DrainMember, err
		},
	}.command(t)
}

// unplanned returns a verb on one member that loses no work, and so has no plan.
func unplanned(
	t *command.Tool, use, short, what string, send func(context.Context, gql.MemberInput) (*gql.MemberChange, error),
) *cobra.Command {
	var f operations.ChangeFlags
	cmd := verb(t, &f, use, short, func(ctx context.Context, id string, deadline int) error {
		return f.Begin(ctx, t, func(ctx context.Context) (operations.Started, error) {
			made, err := send(ctx, gql.MemberInput{
				MemberId: id, DeadlineSeconds: deadline, Reason: f.Reason, IdempotencyKey: f.Key,
			})
			return changed(t, what, made), err
		})
	})
	f.Register(cmd, "15m")
	return cmd
}

func cordon(t *command.Tool) *cobra.Command {
	return unplanned(t, "cordon MEMBER", "Let a member take no new work; running work continues", "cordon",
		func(ctx context.Context, input gql.MemberInput) (*gql.MemberChange, error) {
			answer, err := gql.CordonMember(ctx, t, input)
			return &answer.CordonMember, err
		})
}

func uncordon(t *command.Tool) *cobra.Command {
	return unplanned(t, "uncordon MEMBER", "Let a cordoned or drained member take work again", "uncordon",
		func(ctx context.Context, input gql.MemberInput) (*gql.MemberChange, error) {
			answer, err := gql.UncordonMember(ctx, t, input)
			return &answer.UncordonMember, err
		})
}

func restore(t *command.Tool) *cobra.Command {
	return unplanned(t, "recover MEMBER", "Recover a failed member", "recovery",
		func(ctx context.Context, input gql.MemberInput) (*gql.MemberChange, error) {
			answer, err := gql.RecoverMember(ctx, t, input)
			return &answer.RecoverMember, err
		})
}
