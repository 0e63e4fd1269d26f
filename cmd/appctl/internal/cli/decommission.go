package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

func (t *tool) decommissionCommand() *cobra.Command {
	var input gql.DecommissionInstanceInput
	var deadline time.Duration
	var wait waitFlags
	cmd := t.command("decommission INSTANCE", "Tear an instance down, with proof that nothing is left", cobra.ExactArgs(1),
		func(ctx context.Context, args []string) error {
			var err error
			if input.DeadlineSeconds, err = seconds(deadline); err != nil {
				return err
			}
			c, err := t.connect()
			if err != nil {
				return err
			}
			if input.InstanceId, err = t.instanceID(ctx, c, args[0]); err != nil {
				return err
			}
			input.IdempotencyKey = key(input.IdempotencyKey)
			answer, err := gql.DecommissionInstance(ctx, c, input)
			if err != nil {
				return err
			}
			made := answer.DecommissionInstance
			return t.finish(ctx, c, wait, started{
				operation: made.Operation, json: made, id: made.Operation.Id,
				what:  fmt.Sprintf("decommission of %s (%s)", made.Instance.Name, made.Instance.Id),
				ended: endedInstance(c, made.Instance.Id, made.Operation.Id),
			})
		})
	cmd.Flags().StringVar(&input.Reason, "reason", "", "why, kept in the audit")
	cmd.Flags().DurationVar(&deadline, "deadline", 0, "time after which the teardown counts as failed, 30s to 24h; 15m if not given")
	wait.register(cmd)
	keyFlag(cmd, &input.IdempotencyKey)
	cmd.ValidArgsFunction = t.completeInstances
	return cmd
}
