package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// completionTime bounds a look-up for completion: a shell that hangs is worse than one that does not know.
const (
	completionTime  = 2 * time.Second
	completionLimit = 100
)

// completing runs a look-up within its time; what fails completes nothing.
func completing(cmd *cobra.Command, look func(context.Context) ([]string, error)) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	found, err := look(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

func (t *tool) completeApps(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return completing(cmd, func(ctx context.Context) ([]string, error) {
		t.Quiet = true
		c, err := t.connect()
		if err != nil || len(args) > 0 {
			return nil, err
		}
		apps, err := listApps(ctx, c, "", completionLimit)
		var slugs []string
		for _, app := range apps {
			slugs = append(slugs, cobra.CompletionWithDesc(app.Slug, app.DisplayName))
		}
		return slugs, err
	})
}

func (t *tool) completeInstances(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return completing(cmd, func(ctx context.Context) ([]string, error) {
		t.Quiet = true
		if len(args) > 0 {
			return nil, nil
		}
		c, project, err := t.scope(ctx)
		if err != nil {
			return nil, err
		}
		instances, err := listInstances(ctx, c, project, gql.InstanceFilter{}, completionLimit)
		var names []string
		for _, instance := range instances {
			if instance.ReleasedAt == nil {
				names = append(names, cobra.CompletionWithDesc(instance.Name, string(instance.Status)))
			}
		}
		return names, err
	})
}

// completeActions completes the instance first, then the names of its actions.
func (t *tool) completeActions(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return t.completeInstances(cmd, args, toComplete)
	}
	return completing(cmd, func(ctx context.Context) ([]string, error) {
		t.Quiet = true
		if len(args) > 1 {
			return nil, nil
		}
		_, instance, err := t.instanceDetail(ctx, args[0])
		if err != nil {
			return nil, err
		}
		var names []string
		for _, action := range instance.Actions {
			names = append(names, cobra.CompletionWithDesc(action.Name, action.DisplayName))
		}
		return names, nil
	})
}
