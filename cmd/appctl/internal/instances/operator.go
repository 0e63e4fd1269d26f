package instances

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/lookup"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// operator returns the command that chooses the service account that an instance's adapter may act by.
func operator(t *command.Tool) *cobra.Command {
	var account, reason string
	var none bool
	cmd := command.Verb(t, "operator INSTANCE", "Set the account that an instance's adapter may use", viewOperator,
		func(ctx context.Context, args []string) (_ *gql.OperatorChoice, err error) {
			if (account == "") == !none {
				return nil, command.Usagef("give either --account or --none")
			}
			input := gql.SetOperatorAccountInput{Reason: reason}
			if input.InstanceId, err = lookup.Instance(ctx, t, args[0]); err != nil {
				return nil, err
			}
			if !none {
				id, err := lookup.Account(ctx, t, account)
				if err != nil {
					return nil, err
				}
				input.ServiceAccountId = &id
			}
			answer, err := gql.SetOperatorAccount(ctx, t, input)
			return &answer.SetOperatorAccount, err
		})
	cmd.Long = `Choose the service account of the project that the app's adapter may use for the instance, outside of
operations, such as to scale it by its load. The adapter can use the account's keys on this instance alone. You
need each of these keys. Tokens for the former account end at once.`
	cmd.Example = `  appctl instances operator demo --account demo-operator --reason "scales by its load"
  appctl instances operator demo --none --reason "by hand again"`
	cmd.Flags().StringVar(&account, "account", "", "service account of the project, by id or name")
	cmd.Flags().BoolVar(&none, "none", false, "the adapter acts only in operations")
	command.ReasonFlag(cmd, &reason)
	cmd.ValidArgsFunction = lookup.CompleteInstances(t)
	return cmd
}

func viewOperator(found *gql.OperatorChoice) command.View {
	return command.Fields(found, found.Id, "Instance", found.Name, "Operator account",
		cmp.Or(found.OperatorServiceAccountId, "none"))
}
