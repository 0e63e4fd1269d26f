package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/values"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

func (t *tool) instancesUpgrade() *cobra.Command {
	var f changeFlags
	var input gql.UpgradeInstanceInput
	var config string
	var set []string
	cmd := t.command("upgrade INSTANCE", "Change an instance's version or config; nothing is taken down when it fails", cobra.ExactArgs(1),
		func(ctx context.Context, args []string) error {
			var err error
			if input.DeadlineSeconds, err = seconds(f.deadline); err != nil {
				return err
			}
			if input.Config, err = t.document("--config", config, nil); err != nil {
				return err
			}
			c, instance, err := t.instanceDetail(ctx, args[0])
			if err != nil {
				return err
			}
			if input.Config, err = laidOver(input.Config, instance.Config, set); err != nil {
				return err
			}
			if input.InstanceId = instance.Id; input.Version == "" && len(input.Config) == 0 {
				return usagef("to what? Give --version, --config or --set")
			}
			return t.apply(ctx, c, &f, upgrade(c, &f, &input))
		})
	cmd.Example = `  appctl instances upgrade demo --version 1.3.0 --plan
  appctl instances upgrade demo --set greeting=hello --yes --wait`
	flags := cmd.Flags()
	flags.StringVar(&input.Version, "version", "", "version; the present one if not given")
	flags.StringVar(&config, "config", "", `JSON file with the whole new config; "-" reads standard input; the present config if not given`)
	flags.StringArrayVar(&set, "set", nil, "a value laid over the config, path.to.key=value; repeat for more")
	f.register(cmd, "30m")
	f.registerPlan(cmd)
	cmd.ValidArgsFunction = t.completeInstances
	return cmd
}

// laidOver is the config that was given, or the present one, with the pairs on top; nil without any of them.
func laidOver(given, present json.RawMessage, pairs []string) (json.RawMessage, error) {
	if len(pairs) > 0 && len(given) == 0 {
		given = present
	}
	built, err := values.Build(given, pairs)
	if err != nil {
		return nil, usageError(err)
	}
	return built, nil
}

func upgrade(c *client.Client, f *changeFlags, input *gql.UpgradeInstanceInput) change {
	return change{
		plan: func(ctx context.Context) (*gql.Plan, error) {
			answer, err := gql.PlanUpgradeInstance(ctx, c, gql.PlanUpgradeInstanceInput{InstanceId: input.InstanceId, Version: input.Version, Config: input.Config})
			if err != nil {
				return nil, err
			}
			return &answer.PlanUpgradeInstance, nil
		},
		send: func(ctx context.Context, hash string) (started, error) {
			input.PlanHash, input.Reason, input.IdempotencyKey = hash, f.reason, f.key
			answer, err := gql.UpgradeInstance(ctx, c, *input)
			if err != nil {
				return started{}, err
			}
			return changedInstance(c, "upgrade", answer.UpgradeInstance), nil
		},
	}
}

func (t *tool) instancesRollback() *cobra.Command {
	var f changeFlags
	var generation int
	cmd := t.command("rollback INSTANCE", "Bring an instance back to exactly an earlier version and config", cobra.ExactArgs(1),
		func(ctx context.Context, args []string) error {
			input := gql.RollbackInstanceInput{Reason: f.reason}
			var err error
			if input.DeadlineSeconds, err = seconds(f.deadline); err != nil {
				return err
			}
			if generation != 0 {
				input.Generation = &generation
			}
			c, err := t.connect()
			if err != nil {
				return err
			}
			if input.InstanceId, err = t.instanceID(ctx, c, args[0]); err != nil {
				return err
			}
			return t.apply(ctx, c, &f, rollback(c, &f, input))
		})
	cmd.Flags().IntVar(&generation, "generation", 0, "the generation's number, see appctl instances generations; the one before if not given")
	f.register(cmd, "30m")
	f.registerPlan(cmd)
	cmd.ValidArgsFunction = t.completeInstances
	return cmd
}

func rollback(c *client.Client, f *changeFlags, input gql.RollbackInstanceInput) change {
	return change{
		plan: func(ctx context.Context) (*gql.Plan, error) {
			answer, err := gql.PlanRollbackInstance(ctx, c, gql.PlanRollbackInstanceInput{InstanceId: input.InstanceId, Generation: input.Generation})
			if err != nil {
				return nil, err
			}
			return &answer.PlanRollbackInstance, nil
		},
		send: func(ctx context.Context, hash string) (started, error) {
			input.PlanHash, input.IdempotencyKey = hash, f.key
			answer, err := gql.RollbackInstance(ctx, c, input)
			if err != nil {
				return started{}, err
			}
			return changedInstance(c, "rollback", answer.RollbackInstance), nil
		},
	}
}

// changedInstance is an instance's change, as its verbs answer it.
func changedInstance(c *client.Client, what string, made gql.InstanceChange) started {
	return started{
		operation: made.Operation, JSON: made, IDs: []string{made.Operation.Id},
		what:  fmt.Sprintf("%s of %s (%s)", what, made.Instance.Name, made.Instance.Id),
		ended: endedInstance(c, made.Instance.Id, made.Operation.Id),
	}
}

func (t *tool) instancesGenerations() *cobra.Command {
	cmd := t.command("generations INSTANCE", "List the versions and configs that an instance runs and has run, newest first", cobra.ExactArgs(1),
		func(ctx context.Context, args []string) error {
			c, err := t.connect()
			if err != nil {
				return err
			}
			id, err := t.instanceID(ctx, c, args[0])
			if err != nil {
				return err
			}
			answer, err := gql.ListGenerations(ctx, c, id)
			if err != nil {
				return err
			}
			return t.showGenerations(answer.Instance.Generations)
		})
	cmd.ValidArgsFunction = t.completeInstances
	return cmd
}

func (t *tool) showGenerations(found []gql.Generation) error {
	var rows [][]string
	var numbers []string
	for _, each := range found {
		number := strconv.Itoa(each.Number)
		rows = append(rows, []string{number, each.AppVersion, render.Time(&each.CreatedAt), render.Text(each.OperationId), jsonText(each.Config)})
		numbers = append(numbers, number)
	}
	return t.show(view{JSON: found, IDs: numbers, Page: func(p *render.Page) {
		p.Table([]string{"GENERATION", "VERSION", "SINCE", "OPERATION", "CONFIG"}, rows)
	}})
}
