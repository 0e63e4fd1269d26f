package members

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/instances"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/lookup"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/operations"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// scale returns the command that brings a component to a number of members.
func scale(t *command.Tool) *cobra.Command {
	var f operations.ChangeFlags
	var where intentFlags
	var input gql.ScaleComponentInput
	var allocations []string
	cmd := t.Command("scale INSTANCE", "Bring a component to a number of members",
		func(ctx context.Context, args []string) (err error) {
			if input.DeadlineSeconds, err = f.Deadline(); err != nil {
				return err
			}
			if input.OnDeadline, err = f.Outcome(); err != nil {
				return err
			}
			if input.Intent, err = where.intent(); err != nil {
				return err
			}
			if input.InstanceId, err = lookup.Instance(ctx, t, args[0]); err != nil {
				return err
			}
			if input.AllocationIds, err = lookup.AllocationIDs(ctx, t, allocations); err != nil {
				return err
			}
			input.Force, input.Reason = f.Force, f.Reason
			return f.Apply(ctx, t, scaling(t, &f, &input))
		})
	cmd.Long = `Bring a component to a number of members, by one operation: members are added, or drained and removed.
The plan names the members to remove: those that the app's adapter chooses, or else FAILED members first, then those
that are not in service, drained, draining or cordoned, and unhealthy ones, and among equals the highest number.`
	cmd.Example = `  appctl members scale demo --component worker --count 4 --allocation slot-2,slot-3 --wait
  appctl members scale demo --component worker --count 1 --plan`
	flags := cmd.Flags()
	flags.StringVar(&input.ComponentKey, "component", "", "the component, by the app's own name")
	flags.IntVar(&input.Count, "count", 0, "total number of members, not how many more")
	flags.StringSliceVar(&allocations, "allocation", nil,
		"allocation for new members, by id or name, free or the instance's own; repeat or separate by commas")
	flags.BoolVar(&input.KeepFailed, "keep-failed", false,
		"keep members that could not join, to recover or replace them, instead of undoing the addition")
	where.register(cmd)
	f.Register(cmd, "1h")
	f.RegisterForce(cmd)
	f.RegisterPlan(cmd)
	command.Need(cmd, "component", "count")
	cmd.ValidArgsFunction = lookup.CompleteInstances(t)
	return cmd
}

// scaling is the planned change that bringing a component to a number of members is; --quiet writes the ids of those
// that come or leave.
func scaling(t *command.Tool, f *operations.ChangeFlags, input *gql.ScaleComponentInput) operations.Change {
	return operations.Change{
		Plan: func(ctx context.Context) (*gql.Plan, error) {
			answer, err := gql.PlanScaleComponent(ctx, t, gql.PlanScaleComponentInput{
				InstanceId: input.InstanceId, ComponentKey: input.ComponentKey, Count: input.Count,
				AllocationIds: input.AllocationIds, Intent: input.Intent, KeepFailed: input.KeepFailed,
				Force:           input.Force,
				DeadlineSeconds: input.DeadlineSeconds, OnDeadline: input.OnDeadline,
			})
			return &answer.PlanScaleComponent, err
		},
		Send: func(ctx context.Context, hash string) (operations.Started, error) {
			input.PlanHash, input.IdempotencyKey = hash, f.Key
			answer, err := gql.ScaleComponent(ctx, t, *input)
			made := &answer.ScaleComponent
			ids := memberIDs(append(made.Added, made.Removed...))
			return operations.Started{
				Operation: made.Operation, JSON: made, IDs: ids,
				What: fmt.Sprintf("%s of %s, so that %s has %d in %s (%s)", direction(made),
					render.Plural(len(ids), "member"),
					input.ComponentKey, input.Count, made.Instance.Name, made.Instance.Id),
				Ended: instances.Ended(t, made.Instance.Id, ids...),
			}, err
		},
	}
}

func direction(made *gql.ComponentScaled) string {
	if len(made.Removed) > 0 {
		return "removal"
	}
	return "addition"
}

func memberIDs(members []gql.Member) []string {
	list := []string{}
	for _, member := range members {
		list = append(list, member.Id)
	}
	return list
}
