package lookup

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// Bounds of a look-up for completion: a shell that hangs is worse than one that does not know.
const (
	completionTime  = 2 * time.Second
	completionLimit = 100
)

// completing returns a completion of the argument at a position; what fails completes nothing.
func completing(
	t *command.Tool, position int, look func(ctx context.Context, args []string) ([]string, error),
) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) != position {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		t.Quiet = true
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
		defer cancel()
		found, err := look(ctx, args)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteApps completes the slug of an app.
func CompleteApps(t *command.Tool) cobra.CompletionFunc {
	return completing(t, 0, func(ctx context.Context, _ []string) (slugs []string, err error) {
		apps, err := Apps(ctx, t, "", completionLimit)
		for _, app := range apps {
			slugs = append(slugs, cobra.CompletionWithDesc(app.Slug, app.DisplayName))
		}
		return slugs, err
	})
}

// CompleteInstances completes the name of a live instance.
func CompleteInstances(t *command.Tool) cobra.CompletionFunc {
	return completing(t, 0, func(ctx context.Context, _ []string) (names []string, err error) {
		project, err := t.ProjectID(ctx)
		if err != nil {
			return nil, err
		}
		instances, err := Instances(ctx, t, project, gql.InstanceFilter{}, completionLimit)
		for _, instance := range instances {
			if instance.ReleasedAt == nil {
				names = append(names, cobra.CompletionWithDesc(instance.Name, string(instance.Status)))
			}
		}
		return names, err
	})
}

// CompleteActions completes the instance first, then the names of its actions.
func CompleteActions(t *command.Tool) cobra.CompletionFunc {
	instances := CompleteInstances(t)
	actions := completing(t, 1, func(ctx context.Context, args []string) (names []string, err error) {
		instance, err := InstanceDetail(ctx, t, args[0])
		if err != nil {
			return nil, err
		}
		for _, action := range instance.Actions {
			names = append(names, cobra.CompletionWithDesc(action.Name, action.DisplayName))
		}
		return names, nil
	})
	return func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return instances(cmd, args, toComplete)
		}
		return actions(cmd, args, toComplete)
	}
}
