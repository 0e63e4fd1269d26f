package members

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/instances"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/operations"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// remove returns the command that takes members out: one, or several of one instance by one operation.
func remove(t *command.Tool) *cobra.Command {
	var f operations.ChangeFlags
	short := "Remove members, drained first, with proof that nothing of them is left"
	cmd := t.Command("remove MEMBER [MEMBER]…", short, func(ctx context.Context, args []string) error {
		deadline, err := f.Deadline()
		if err != nil {
			return err
		}
		outcome, err := f.Outcome()
		if err != nil {
			return err
		}
		found := make([]string, len(args))
		for i, given := range args {
			if found[i], err = find(ctx, t, given); err != nil {
				return err
			}
		}
		if len(found) == 1 {
			return f.Apply(ctx, t, removalOfOne(t, &f, gql.RemoveMemberInput{
				MemberId: found[0], Force: f.Force, DeadlineSeconds: deadline, OnDeadline: outcome, Reason: f.Reason,
			}))
		}
		return f.Apply(ctx, t, removalOfSeveral(t, &f, gql.RemoveMembersInput{
			MemberIds: found, Force: f.Force, DeadlineSeconds: deadline, OnDeadline: outcome, Reason: f.Reason,
		}))
	})
	cmd.Args = cobra.MinimumNArgs(1)
	cmd.Long = short + ". Several members of one instance are removed by one operation: all or none.\n\n" + help
	cmd.Example = "  appctl members remove demo/worker/2 demo/worker/3 --wait"
	f.Register(cmd, "1h")
	f.RegisterForce(cmd)
	f.RegisterPlan(cmd)
	return cmd
}

func removalOfOne(t *command.Tool, f *operations.ChangeFlags, input gql.RemoveMemberInput) operations.Change {
	return operations.Change{
		Plan: func(ctx context.Context) (*gql.Plan, error) {
			answer, err := gql.PlanRemoveMember(ctx, t, gql.PlanMemberInput{
				MemberId: input.MemberId, Force: input.Force, DeadlineSeconds: input.DeadlineSeconds,
				OnDeadline: input.OnDeadline,
			})
			return &answer.PlanRemoveMember, err
		},
		Send: func(ctx context.Context, hash string) (operations.Started, error) {
			input.PlanHash, input.IdempotencyKey = hash, f.Key
			answer, err := gql.RemoveMember(ctx, t, input)
			return changed(t, "removal", &answer.RemoveMember), err
		},
	}
}

// removalOfSeveral is the planned change that removing several members is; --quiet writes their ids.
func removalOfSeveral(t *command.Tool, f *operations.ChangeFlags, input gql.RemoveMembersInput) operations.Change {
	return operations.Change{
		Plan: func(ctx context.Context) (*gql.Plan, error) {
			answer, err := gql.PlanRemoveMembers(ctx, t, gql.PlanRemoveMembersInput{
				MemberIds: input.MemberIds, Force: input.Force, DeadlineSeconds: input.DeadlineSeconds,
				OnDeadline: input.OnDeadline,
			})
			return &answer.PlanRemoveMembers, err
		},
		Send: func(ctx context.Context, hash string) (operations.Started, error) {
			input.PlanHash, input.IdempotencyKey = hash, f.Key
			answer, err := gql.RemoveMembers(ctx, t, input)
			made := &answer.RemoveMembers
			ids := memberIDs(made.Members)
			return operations.Started{
				Operation: made.Operation, JSON: made, IDs: ids,
				What: fmt.Sprintf("removal of %s of %s (%s)", render.Plural(len(ids), "member"), made.Instance.Name,
					made.Instance.Id),
				Ended: instances.Ended(t, made.Instance.Id, ids...),
			}, err
		},
	}
}
