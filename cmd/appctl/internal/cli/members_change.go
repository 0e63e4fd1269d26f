package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// memberVerb is a command about one member; run gets its id and the deadline in whole seconds.
func (t *tool) memberVerb(use, short string, run func(context.Context, *client.Client, string, int) error, f *changeFlags) *cobra.Command {
	cmd := t.command(use, short, cobra.ExactArgs(1), func(ctx context.Context, args []string) error {
		deadline, err := seconds(f.deadline)
		if err != nil {
			return err
		}
		c, id, err := t.memberID(ctx, args[0])
		if err != nil {
			return err
		}
		return run(ctx, c, id, deadline)
	})
	cmd.Long = short + ".\n\n" + memberHelp
	return cmd
}

// changed is a member's change, as every verb answers it.
func changed(c *client.Client, what string, made gql.MemberChange) started {
	return started{
		operation: made.Operation, JSON: made, IDs: []string{made.Operation.Id},
		what:  fmt.Sprintf("%s of %s (%s)", what, memberName(&made.Member), made.Member.Id),
		ended: endedMember(c, made.Member.Id),
	}
}

// endedMember shows a member as its operation has left it.
func endedMember(c *client.Client, id string) func(context.Context, *gql.OperationDetail) (view, error) {
	return func(ctx context.Context, op *gql.OperationDetail) (view, error) {
		answer, err := gql.GetMember(ctx, c, id)
		if err != nil {
			return view{}, err
		}
		return view{
			JSON: map[string]any{"member": answer.Member, "operation": op}, IDs: []string{op.Id},
			Page: func(p *render.Page) { pageMember(p, &answer.Member) },
		}, nil
	}
}

func (t *tool) membersDrain() *cobra.Command {
	var f changeFlags
	cmd := t.memberVerb("drain MEMBER", "Let a member's work end; it takes no new work and stays", func(ctx context.Context, c *client.Client, id string, deadline int) error {
		outcome, err := f.outcome()
		if err != nil {
			return err
		}
		return t.apply(ctx, c, &f, change{
			plan: func(ctx context.Context) (*gql.Plan, error) {
				answer, err := gql.PlanDrainMember(ctx, c, gql.PlanMemberInput{MemberId: id, Force: f.force})
				if err != nil {
					return nil, err
				}
				return &answer.PlanDrainMember, nil
			},
			send: func(ctx context.Context, hash string) (started, error) {
				answer, err := gql.DrainMember(ctx, c, gql.DrainMemberInput{
					MemberId: id, Force: f.force, DeadlineSeconds: deadline, OnDeadline: outcome, PlanHash: hash, Reason: f.reason, IdempotencyKey: f.key,
				})
				if err != nil {
					return started{}, err
				}
				return changed(c, "drain", answer.DrainMember), nil
			},
		})
	}, &f)
	f.register(cmd, "1h")
	f.registerForce(cmd)
	f.registerPlan(cmd)
	return cmd
}

func (t *tool) membersRemove() *cobra.Command {
	var f changeFlags
	cmd := t.memberVerb("remove MEMBER", "Take a member out, drained first, with proof that nothing of it is left", func(ctx context.Context, c *client.Client, id string, deadline int) error {
		outcome, err := f.outcome()
		if err != nil {
			return err
		}
		return t.apply(ctx, c, &f, change{
			plan: func(ctx context.Context) (*gql.Plan, error) {
				answer, err := gql.PlanRemoveMember(ctx, c, gql.PlanMemberInput{MemberId: id, Force: f.force})
				if err != nil {
					return nil, err
				}
				return &answer.PlanRemoveMember, nil
			},
			send: func(ctx context.Context, hash string) (started, error) {
				answer, err := gql.RemoveMember(ctx, c, gql.RemoveMemberInput{
					MemberId: id, Force: f.force, DeadlineSeconds: deadline, OnDeadline: outcome, PlanHash: hash, Reason: f.reason, IdempotencyKey: f.key,
				})
				if err != nil {
					return started{}, err
				}
				return changed(c, "removal", answer.RemoveMember), nil
			},
		})
	}, &f)
	f.register(cmd, "1h")
	f.registerForce(cmd)
	f.registerPlan(cmd)
	return cmd
}

func (t *tool) membersCordon() *cobra.Command {
	var f changeFlags
	cmd := t.memberVerb("cordon MEMBER", "Let a member take no new work; what runs goes on", func(ctx context.Context, c *client.Client, id string, deadline int) error {
		answer, err := gql.CordonMember(ctx, c, f.memberInput(id, deadline))
		if err != nil {
			return err
		}
		return t.finish(ctx, c, f.wait, changed(c, "cordon", answer.CordonMember))
	}, &f)
	f.register(cmd, "15m")
	return cmd
}

func (t *tool) membersUncordon() *cobra.Command {
	var f changeFlags
	cmd := t.memberVerb("uncordon MEMBER", "Let a cordoned or drained member take work again", func(ctx context.Context, c *client.Client, id string, deadline int) error {
		answer, err := gql.UncordonMember(ctx, c, f.memberInput(id, deadline))
		if err != nil {
			return err
		}
		return t.finish(ctx, c, f.wait, changed(c, "uncordon", answer.UncordonMember))
	}, &f)
	f.register(cmd, "15m")
	return cmd
}

func (t *tool) membersRecover() *cobra.Command {
	var f changeFlags
	cmd := t.memberVerb("recover MEMBER", "Bring a failed member in again", func(ctx context.Context, c *client.Client, id string, deadline int) error {
		answer, err := gql.RecoverMember(ctx, c, f.memberInput(id, deadline))
		if err != nil {
			return err
		}
		return t.finish(ctx, c, f.wait, changed(c, "recovery", answer.RecoverMember))
	}, &f)
	f.register(cmd, "15m")
	return cmd
}

func (f *changeFlags) memberInput(id string, deadline int) gql.MemberInput {
	return gql.MemberInput{MemberId: id, DeadlineSeconds: deadline, Reason: f.reason, IdempotencyKey: key(f.key)}
}
