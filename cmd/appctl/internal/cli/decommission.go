package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// decommissionCommand tears an instance down. The short form outside of the group is lenient: scripts that were
// written before there were plans give no --yes.
func (t *tool) decommissionCommand(lenient bool) *cobra.Command {
	f := changeFlags{lenient: lenient}
	cmd := t.command("decommission INSTANCE", "Tear an instance down, with proof that nothing is left", cobra.ExactArgs(1),
		func(ctx context.Context, args []string) error { return t.decommission(ctx, args[0], &f) })
	f.register(cmd, "15m")
	f.registerForce(cmd)
	f.registerPlan(cmd)
	cmd.ValidArgsFunction = t.completeInstances
	return cmd
}

func (t *tool) decommission(ctx context.Context, given string, f *changeFlags) error {
	input := gql.DecommissionInstanceInput{Force: f.force, Reason: f.reason}
	var err error
	if input.DeadlineSeconds, err = seconds(f.deadline); err != nil {
		return err
	}
	if input.OnDeadline, err = f.outcome(); err != nil {
		return err
	}
	c, err := t.connect()
	if err != nil {
		return err
	}
	if input.InstanceId, err = t.instanceID(ctx, c, given); err != nil {
		return err
	}
	return t.apply(ctx, c, f, change{
		plan: func(ctx context.Context) (*gql.Plan, error) {
			answer, err := gql.PlanDecommissionInstance(ctx, c, gql.PlanDecommissionInstanceInput{InstanceId: input.InstanceId, Force: input.Force})
			if err != nil {
				return nil, err
			}
			return &answer.PlanDecommissionInstance, nil
		},
		send: func(ctx context.Context, hash string) (started, error) {
			input.PlanHash, input.IdempotencyKey = hash, f.key
			answer, err := gql.DecommissionInstance(ctx, c, input)
			if err != nil {
				return started{}, err
			}
			made := answer.DecommissionInstance
			return started{
				operation: made.Operation, JSON: made, IDs: []string{made.Operation.Id},
				what:  fmt.Sprintf("decommission of %s (%s)", made.Instance.Name, made.Instance.Id),
				ended: endedInstance(c, made.Instance.Id, made.Operation.Id),
			}, nil
		},
	})
}
