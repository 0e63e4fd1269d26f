package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// intentFlags ask for capacity along with a change.
type intentFlags struct {
	shape, sku, region string
	gpus               int
}

func (f *intentFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.shape, "shape", "", "ask for new capacity: baremetal (whole nodes) or gpu_slice (some GPUs of a node)")
	flags.IntVar(&f.gpus, "gpus", 0, "GPUs of each new allocation, for gpu_slice")
	flags.StringVar(&f.sku, "sku", "", "only this SKU, for new capacity")
	flags.StringVar(&f.region, "region", "", "only this region, for new capacity")
	cmd.MarkFlagsMutuallyExclusive("allocation", "shape")
}

// intent is the capacity asked for; nil for none.
func (f *intentFlags) intent() (*gql.CapacityIntentInput, error) {
	if f.shape == "" {
		if f.gpus != 0 || f.sku != "" || f.region != "" {
			return nil, usagef("--gpus, --sku and --region say what new capacity is like: give --shape with them")
		}
		return nil, nil
	}
	shapes, err := enums("shape", []string{f.shape}, gql.AllCapacityShape)
	if err != nil {
		return nil, err
	}
	intent := &gql.CapacityIntentInput{Shape: shapes[0], Sku: f.sku, Region: f.region}
	if f.gpus != 0 {
		intent.GpuCount = &f.gpus
	}
	return intent, nil
}

func (t *tool) membersAdd() *cobra.Command {
	var f changeFlags
	var where intentFlags
	var input gql.AddMembersInput
	var allocations []string
	cmd := t.command("add INSTANCE", "Add members to a component", cobra.ExactArgs(1), func(ctx context.Context, args []string) error {
		var err error
		if input.DeadlineSeconds, err = seconds(f.deadline); err != nil {
			return err
		}
		if input.Intent, err = where.intent(); err != nil {
			return err
		}
		c, err := t.connect()
		if err != nil {
			return err
		}
		if input.InstanceId, err = t.instanceID(ctx, c, args[0]); err != nil {
			return err
		}
		if input.AllocationIds, err = t.allocationIDs(ctx, c, allocations); err != nil {
			return err
		}
		return t.apply(ctx, c, &f, addition(c, &f, &input))
	})
	cmd.Example = `  appctl members add demo --component worker --count 2 --allocation slot-2,slot-3 --wait
  appctl members add demo --component worker --shape gpu-slice --gpus 1 --plan`
	flags := cmd.Flags()
	flags.StringVar(&input.ComponentKey, "component", "", "the component, by the app's own name")
	flags.IntVar(&input.Count, "count", 1, "how many more, 1 to 64")
	flags.StringSliceVar(&allocations, "allocation", nil, "where: allocation by id or name, free or the instance's own; repeat or separate by commas")
	flags.BoolVar(&input.KeepFailed, "keep-failed", false, "keep members that could not join, to recover or replace them, instead of undoing the addition")
	where.register(cmd)
	f.register(cmd, "15m")
	f.registerPlan(cmd)
	_ = cmd.MarkFlagRequired("component")
	cmd.ValidArgsFunction = t.completeInstances
	return cmd
}

func addition(c *client.Client, f *changeFlags, input *gql.AddMembersInput) change {
	return change{
		plan: func(ctx context.Context) (*gql.Plan, error) {
			answer, err := gql.PlanAddMembers(ctx, c, gql.PlanAddMembersInput{
				InstanceId: input.InstanceId, ComponentKey: input.ComponentKey, Count: input.Count, AllocationIds: input.AllocationIds, Intent: input.Intent,
			})
			if err != nil {
				return nil, err
			}
			return &answer.PlanAddMembers, nil
		},
		send: func(ctx context.Context, hash string) (started, error) {
			input.PlanHash, input.Reason, input.IdempotencyKey = hash, f.reason, f.key
			answer, err := gql.AddMembers(ctx, c, *input)
			if err != nil {
				return started{}, err
			}
			made := answer.AddMembers
			var ids []string
			for _, member := range made.Members {
				ids = append(ids, member.Id)
			}
			return started{
				operation: made.Operation, JSON: made, IDs: ids,
				what:  fmt.Sprintf("addition of %s to %s (%s)", plural(len(ids), "member"), made.Instance.Name, made.Instance.Id),
				ended: endedInstance(c, made.Instance.Id, ids...),
			}, nil
		},
	}
}

func (t *tool) membersReplace() *cobra.Command {
	var f changeFlags
	var where intentFlags
	var allocation string
	cmd := t.memberVerb("replace MEMBER", "Put a new member in another's place", func(ctx context.Context, c *client.Client, id string, deadline int) error {
		outcome, err := f.outcome()
		if err != nil {
			return err
		}
		intent, err := where.intent()
		if err != nil {
			return err
		}
		input := gql.ReplaceMemberInput{
			MemberId: id, Intent: intent, Force: f.force, DeadlineSeconds: deadline, OnDeadline: outcome, Reason: f.reason,
		}
		if allocation != "" {
			ids, err := t.allocationIDs(ctx, c, []string{allocation})
			if err != nil {
				return err
			}
			input.AllocationId = ids[0]
		}
		return t.apply(ctx, c, &f, replacement(c, &f, input))
	}, &f)
	cmd.Flags().StringVar(&allocation, "allocation", "", "where the new one lives, by id or name; the same allocation if not given")
	where.register(cmd)
	f.register(cmd, "1h")
	f.registerForce(cmd)
	f.registerPlan(cmd)
	return cmd
}

func replacement(c *client.Client, f *changeFlags, input gql.ReplaceMemberInput) change {
	return change{
		plan: func(ctx context.Context) (*gql.Plan, error) {
			answer, err := gql.PlanReplaceMember(ctx, c, gql.PlanReplaceMemberInput{
				MemberId: input.MemberId, AllocationId: input.AllocationId, Intent: input.Intent, Force: input.Force,
			})
			if err != nil {
				return nil, err
			}
			return &answer.PlanReplaceMember, nil
		},
		send: func(ctx context.Context, hash string) (started, error) {
			input.PlanHash, input.IdempotencyKey = hash, f.key
			answer, err := gql.ReplaceMember(ctx, c, input)
			if err != nil {
				return started{}, err
			}
			made := answer.ReplaceMember
			return started{
				operation: made.Operation, JSON: made, IDs: []string{made.Replacement.Id},
				what:  fmt.Sprintf("replacement of %s (%s) by %s (%s)", memberName(&made.Member), made.Member.Id, memberName(&made.Replacement), made.Replacement.Id),
				ended: endedMember(c, made.Replacement.Id),
			}, nil
		},
	}
}

func (t *tool) membersLabel() *cobra.Command {
	var f changeFlags
	var only bool
	cmd := t.command("label MEMBER [NAME=VALUE | NAME-]…", "Label a member; NAME- takes a label away", cobra.MinimumNArgs(1),
		func(ctx context.Context, args []string) error {
			deadline, err := seconds(f.deadline)
			if err != nil {
				return err
			}
			if len(args) == 1 && !only {
				return usagef("which labels? Give NAME=VALUE or NAME-, or --only to take all away")
			}
			c, id, err := t.memberID(ctx, args[0])
			if err != nil {
				return err
			}
			set, err := newLabels(ctx, c, id, args[1:], only)
			if err != nil {
				return err
			}
			answer, err := gql.LabelMember(ctx, c, gql.LabelMemberInput{
				MemberId: id, Labels: set, DeadlineSeconds: deadline, Reason: f.reason, IdempotencyKey: key(f.key),
			})
			if err != nil {
				return err
			}
			return t.finish(ctx, c, f.wait, changed(c, "labels", answer.LabelMember))
		})
	cmd.Long = "Label a member. The pairs are laid over the labels it has.\n\n" + memberHelp
	cmd.Example = "  appctl members label demo/worker/0 zone=a rack-"
	cmd.Flags().BoolVar(&only, "only", false, "take every label away that is not given")
	f.register(cmd, "5m")
	return cmd
}

// newLabels is the whole new set, as JSON.
func newLabels(ctx context.Context, c *client.Client, id string, pairs []string, only bool) (json.RawMessage, error) {
	set := map[string]string{}
	if !only {
		answer, err := gql.GetMember(ctx, c, id)
		if err != nil {
			return nil, err
		}
		set = labels(answer.Member.Labels)
	}
	for _, pair := range pairs {
		name, value, given := strings.Cut(pair, "=")
		gone, away := strings.CutSuffix(pair, "-")
		switch {
		case given && name != "":
			set[name] = value
		case !given && away && gone != "":
			delete(set, gone)
		default:
			return nil, usagef("%q: must be NAME=VALUE, or NAME- to take it away", pair)
		}
	}
	return json.Marshal(set)
}
