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

// intentFlags describe new capacity that is rented along with a change.
type intentFlags struct {
	shape, sku, region string
	gpus               int
}

func (f *intentFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.shape, "shape", "",
		"rent new capacity: baremetal (whole nodes) or gpu_slice (some GPUs of a node)")
	flags.IntVar(&f.gpus, "gpus", 0, "GPUs of each new allocation, for gpu_slice")
	flags.StringVar(&f.sku, "sku", "", "only this SKU, for new capacity")
	flags.StringVar(&f.region, "region", "", "only this region, for new capacity")
	cmd.MarkFlagsMutuallyExclusive("allocation", "shape")
}

// intent returns the capacity that is wanted; nil for none.
func (f *intentFlags) intent() (*gql.CapacityIntentInput, error) {
	if f.shape == "" {
		if f.gpus != 0 || f.sku != "" || f.region != "" {
			return nil, command.Usagef("--gpus, --sku and --region describe new capacity: give --shape with them")
		}
		return nil, nil
	}
	shape, err := command.Enum("shape", f.shape, gql.AllCapacityShape)
	if err != nil {
		return nil, err
	}
	return &gql.CapacityIntentInput{Shape: shape, Sku: f.sku, Region: f.region, GpuCount: command.Given(f.gpus)}, nil
}

// add returns the command that adds members, in given allocations or in capacity that is rented along with them.
func add(t *command.Tool) *cobra.Command {
	var f operations.ChangeFlags
	var where intentFlags
	var input gql.AddMembersInput
	var allocations []string
	cmd := t.Command("add INSTANCE", "Add members to a component",
		func(ctx context.Context, args []string) (err error) {
			if input.DeadlineSeconds, err = f.Deadline(); err != nil {
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
			return f.Apply(ctx, t, addition(t, &f, &input))
		})
	cmd.Example = `  appctl members add demo --component worker --count 2 --allocation slot-2,slot-3 --wait
  appctl members add demo --component worker --shape gpu-slice --gpus 1 --plan`
	flags := cmd.Flags()
	flags.StringVar(&input.ComponentKey, "component", "", "the component, by the app's own name")
	flags.IntVar(&input.Count, "count", 1, "how many more, 1 to 64")
	flags.StringSliceVar(&allocations, "allocation", nil,
		"allocation for them, by id or name, free or the instance's own; repeat or separate by commas")
	flags.BoolVar(&input.KeepFailed, "keep-failed", false,
		"keep members that could not join, to recover or replace them, instead of undoing the addition")
	where.register(cmd)
	f.Register(cmd, "15m")
	f.RegisterPlan(cmd)
	command.Need(cmd, "component")
	cmd.ValidArgsFunction = lookup.CompleteInstances(t)
	return cmd
}

// addition is the planned change that adding members is.
func addition(t *command.Tool, f *operations.ChangeFlags, input *gql.AddMembersInput) operations.Change {
	return operations.Change{
		Plan: func(ctx context.Context) (*gql.Plan, error) {
			answer, err := gql.PlanAddMembers(ctx, t, gql.PlanAddMembersInput{
				InstanceId: input.InstanceId, ComponentKey: input.ComponentKey, Count: input.Count,
				AllocationIds: input.AllocationIds, Intent: input.Intent, KeepFailed: input.KeepFailed,
				DeadlineSeconds: input.DeadlineSeconds,
			})
			return &answer.PlanAddMembers, err
		},
		Send: func(ctx context.Context, hash string) (operations.Started, error) {
			input.PlanHash, input.Reason, input.IdempotencyKey = hash, f.Reason, f.Key
			answer, err := gql.AddMembers(ctx, t, *input)
			made := &answer.AddMembers
			ids := memberIDs(made.Members)
			return operations.Started{
				Operation: made.Operation, JSON: made,
				What: fmt.Sprintf("addition of %s to %s (%s)", render.Plural(len(ids), "member"),
					made.Instance.Name, made.Instance.Id),
				Ended: instances.Ended(t, made.Instance.Id, ids...),
			}, err
		},
	}
}

// replace returns the command that puts a new member in the place of another, where that was if no place is given.
func replace(t *command.Tool) *cobra.Command {
	var f operations.ChangeFlags
	var where intentFlags
	var allocation string
	cmd := verb(t, &f, "replace MEMBER", "Replace a member with a new one",
		func(ctx context.Context, id string, deadline int) (err error) {
			input := gql.ReplaceMemberInput{MemberId: id, Force: f.Force, DeadlineSeconds: deadline, Reason: f.Reason}
			if input.OnDeadline, err = f.Outcome(); err != nil {
				return err
			}
			if input.Intent, err = where.intent(); err != nil {
				return err
			}
			if allocation != "" {
				ids, err := lookup.AllocationIDs(ctx, t, []string{allocation})
				if err != nil {
					return err
				}
				input.AllocationId = ids[0]
			}
			return f.Apply(ctx, t, replacement(t, &f, input))
		})
	cmd.Flags().StringVar(&allocation, "allocation", "",
		"allocation of the new member, by id or name; the same one if not given")
	where.register(cmd)
	f.Register(cmd, "1h")
	f.RegisterForce(cmd)
	f.RegisterPlan(cmd)
	return cmd
}

// replacement is the planned change that replacing a member is; --quiet writes the new member's id.
func replacement(t *command.Tool, f *operations.ChangeFlags, input gql.ReplaceMemberInput) operations.Change {
	return operations.Change{
		Plan: func(ctx context.Context) (*gql.Plan, error) {
			answer, err := gql.PlanReplaceMember(ctx, t, gql.PlanReplaceMemberInput{
				MemberId: input.MemberId, AllocationId: input.AllocationId, Intent: input.Intent, Force: input.Force,
				DeadlineSeconds: input.DeadlineSeconds, OnDeadline: input.OnDeadline,
			})
			return &answer.PlanReplaceMember, err
		},
		Send: func(ctx context.Context, hash string) (operations.Started, error) {
			input.PlanHash, input.IdempotencyKey = hash, f.Key
			answer, err := gql.ReplaceMember(ctx, t, input)
			made := &answer.ReplaceMember
			return operations.Started{
				Operation: made.Operation, JSON: made, IDs: []string{made.Replacement.Id},
				What: fmt.Sprintf("replacement of %s (%s) by %s (%s)", name(&made.Member), made.Member.Id,
					name(&made.Replacement), made.Replacement.Id),
				Ended: ended(t, made.Replacement.Id),
			}, err
		},
	}
}
