package instances

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/lookup"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/operations"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// upgrade returns the command that changes a version or config. Pairs given alone are laid over the present config, so
// that changing one value does not reset the others.
func upgrade(t *command.Tool) *cobra.Command {
	var f operations.ChangeFlags
	var input gql.UpgradeInstanceInput
	var config string
	var set []string
	cmd := t.Command("upgrade INSTANCE", "Change an instance's version or config; a failed change takes nothing down",
		func(ctx context.Context, args []string) (err error) {
			if input.DeadlineSeconds, err = f.Deadline(); err != nil {
				return err
			}
			if input.Config, err = t.Document("--config", config, nil); err != nil {
				return err
			}
			instance, err := lookup.InstanceDetail(ctx, t, args[0])
			if err != nil {
				return err
			}
			if len(set) > 0 && len(input.Config) == 0 {
				input.Config = instance.Config
			}
			if input.Config, err = command.LaidOver(input.Config, set); err != nil {
				return err
			}
			if input.InstanceId = instance.Id; input.Version == "" && len(input.Config) == 0 {
				return command.Usagef("to what? Give --version, --config or --set")
			}
			return f.Apply(ctx, t, upgradeOf(t, &f, &input))
		})
	cmd.Example = `  appctl instances upgrade demo --version 1.3.0 --plan
  appctl instances upgrade demo --set greeting=hello --yes --wait`
	flags := cmd.Flags()
	flags.StringVar(&input.Version, "version", "", "version; the current one if not given")
	flags.StringVar(&config, "config", "",
		`JSON file with the whole new config; "-" reads standard input; the current config if not given`)
	flags.StringArrayVar(&set, "set", nil, "a value to change in the config, path.to.key=value; repeat for more")
	register(t, cmd, &f, "30m")
	return cmd
}

// register adds the flags of a change of an instance, and completes which one.
func register(t *command.Tool, cmd *cobra.Command, f *operations.ChangeFlags, deadline string) {
	f.Register(cmd, deadline)
	f.RegisterPlan(cmd)
	cmd.ValidArgsFunction = lookup.CompleteInstances(t)
}

// upgradeOf is the planned change that an upgrade is.
func upgradeOf(t *command.Tool, f *operations.ChangeFlags, input *gql.UpgradeInstanceInput) operations.Change {
	return operations.Change{
		Plan: func(ctx context.Context) (*gql.Plan, error) {
			answer, err := gql.PlanUpgradeInstance(ctx, t, gql.PlanUpgradeInstanceInput{
				InstanceId: input.InstanceId, Version: input.Version, Config: input.Config,
				DeadlineSeconds: input.DeadlineSeconds,
			})
			return &answer.PlanUpgradeInstance, err
		},
		Send: func(ctx context.Context, hash string) (operations.Started, error) {
			input.PlanHash, input.Reason, input.IdempotencyKey = hash, f.Reason, f.Key
			answer, err := gql.UpgradeInstance(ctx, t, *input)
			made := &answer.UpgradeInstance
			return changed(t, "upgrade", &made.Instance, made.Operation, made), err
		},
	}
}

// rollback returns the command that brings an earlier generation back.
func rollback(t *command.Tool) *cobra.Command {
	var f operations.ChangeFlags
	var generation int
	cmd := t.Command("rollback INSTANCE", "Roll an instance back to exactly an earlier version and config",
		func(ctx context.Context, args []string) (err error) {
			input := gql.RollbackInstanceInput{Reason: f.Reason, Generation: command.Given(generation)}
			if input.DeadlineSeconds, err = f.Deadline(); err != nil {
				return err
			}
			if input.InstanceId, err = lookup.Instance(ctx, t, args[0]); err != nil {
				return err
			}
			return f.Apply(ctx, t, rollbackOf(t, &f, input))
		})
	cmd.Flags().IntVar(&generation, "generation", 0,
		"the generation's number, see appctl instances generations; the previous one if not given")
	register(t, cmd, &f, "30m")
	return cmd
}

// rollbackOf is the planned change that a rollback is.
func rollbackOf(t *command.Tool, f *operations.ChangeFlags, input gql.RollbackInstanceInput) operations.Change {
	return operations.Change{
		Plan: func(ctx context.Context) (*gql.Plan, error) {
			answer, err := gql.PlanRollbackInstance(ctx, t, gql.PlanRollbackInstanceInput{
				InstanceId: input.InstanceId, Generation: input.Generation, DeadlineSeconds: input.DeadlineSeconds,
			})
			return &answer.PlanRollbackInstance, err
		},
		Send: func(ctx context.Context, hash string) (operations.Started, error) {
			input.PlanHash, input.IdempotencyKey = hash, f.Key
			answer, err := gql.RollbackInstance(ctx, t, input)
			made := &answer.RollbackInstance
			return changed(t, "rollback", &made.Instance, made.Operation, made), err
		},
	}
}

// decommission tears an instance down. The short form outside of the group is lenient: scripts that were written
// before there were plans give no --yes.
func decommission(t *command.Tool, lenient bool) *cobra.Command {
	f := operations.ChangeFlags{Lenient: lenient}
	cmd := t.Command("decommission INSTANCE", "Tear an instance down, with proof that nothing is left",
		func(ctx context.Context, args []string) (err error) {
			input := gql.DecommissionInstanceInput{Force: f.Force, Reason: f.Reason}
			if input.DeadlineSeconds, err = f.Deadline(); err != nil {
				return err
			}
			if input.OnDeadline, err = f.Outcome(); err != nil {
				return err
			}
			if input.InstanceId, err = lookup.Instance(ctx, t, args[0]); err != nil {
				return err
			}
			return f.Apply(ctx, t, decommissionOf(t, &f, input))
		})
	f.RegisterForce(cmd)
	register(t, cmd, &f, "15m")
	return cmd
}

// decommissionOf is the planned change that a teardown is.
func decommissionOf(t *command.Tool, f *operations.ChangeFlags, input gql.DecommissionInstanceInput) operations.Change {
	return operations.Change{
		Plan: func(ctx context.Context) (*gql.Plan, error) {
			answer, err := gql.PlanDecommissionInstance(ctx, t, gql.PlanDecommissionInstanceInput{
				InstanceId: input.InstanceId, Force: input.Force, DeadlineSeconds: input.DeadlineSeconds,
				OnDeadline: input.OnDeadline,
			})
			return &answer.PlanDecommissionInstance, err
		},
		Send: func(ctx context.Context, hash string) (operations.Started, error) {
			input.PlanHash, input.IdempotencyKey = hash, f.Key
			answer, err := gql.DecommissionInstance(ctx, t, input)
			made := &answer.DecommissionInstance
			return changed(t, "decommission", &made.Instance, made.Operation, made), err
		},
	}
}

// generations returns the command that lists what an instance runs and has run; --quiet writes the numbers, which
// rollback takes.
func generations(t *command.Tool) *cobra.Command {
	cmd := command.Of(t, "generations INSTANCE",
		"List the versions and configs that an instance runs and has run, newest first",
		lookup.OfInstance(t), generationTable.View,
		func(ctx context.Context, id string, _ []string) ([]gql.Generation, error) {
			answer, err := gql.ListGenerations(ctx, t, id)
			return answer.Instance.Generations, err
		})
	cmd.ValidArgsFunction = lookup.CompleteInstances(t)
	return cmd
}

var generationTable = command.Table[gql.Generation]{
	Heading: []string{"GENERATION", "VERSION", "SINCE", "OPERATION", "CONFIG"},
	Row: func(each *gql.Generation) []string {
		return []string{
			strconv.Itoa(each.Number), each.AppVersion, render.Time(&each.CreatedAt), render.Text(each.OperationId),
			render.Document(each.Config),
		}
	},
}
