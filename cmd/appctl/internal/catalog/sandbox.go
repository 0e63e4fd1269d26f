package catalog

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// Sandbox returns the commands about the adapters of a project's sandbox.
func Sandbox(t *command.Tool) []*cobra.Command {
	return []*cobra.Command{registerSandbox(t), listSandbox(t)}
}

// createSandbox returns the command that adds an app which only the project may launch.
func createSandbox(t *command.Tool) *cobra.Command {
	var input gql.CreateSandboxAppInput
	cmd := command.Of(t, "create SLUG",
		"Add an app of your own in the project's sandbox: no other project launches it, and no other tenant sees it",
		t.InProject, viewEntry, func(ctx context.Context, project string, args []string) (gql.App, error) {
			input.ProjectId, input.Slug = project, args[0]
			input.DisplayName = cmp.Or(input.DisplayName, args[0])
			answer, err := gql.CreateSandboxApp(ctx, t, input)
			return answer.CreateSandboxApp, err
		})
	cmd.Long = `Add an app that only the project may launch, and entitle the project to it. Its name begins with the
tenant's short name and a hyphen. The platform's staff opens it to others: appctl admin app open. Needs sandbox.manage.`
	cmd.Flags().StringVar(&input.DisplayName, "display-name", "", "display name; the slug if not given")
	cmd.Flags().StringVar(&input.Summary, "summary", "", "summary in one line")
	cmd.Flags().StringVar(&input.PermissionFamily, "family", "apps", "family of its permission keys: apps or scheduler")
	command.KeyFlag(cmd, &input.IdempotencyKey)
	return cmd
}

func viewEntry(made gql.App) command.View {
	return command.One(made, made.Id, "Slug", made.Slug, "Name", made.DisplayName, "Family", made.PermissionFamily,
		"Sandbox", render.YesNo(made.Sandbox))
}

// open returns the command that takes an app out of its sandbox.
func open(t *command.Tool) *cobra.Command {
	var input gql.OpenAppInput
	cmd := command.Verb(t, "open SLUG",
		"Take an app out of its sandbox: every entitled project may launch it", viewEntry,
		func(ctx context.Context, args []string) (gql.App, error) {
			input.AppSlug = args[0]
			answer, err := gql.OpenApp(ctx, t, input)
			return answer.OpenApp, err
		})
	cmd.Long = `Take an app out of its sandbox, with its publisher, versions, evidence and instances. First register its
adapter for all tenants (appctl admin adapter register). An ACTIVE version needs reports and smokes that registered
runners have signed.`
	command.NeededReasonFlag(cmd, &input.Reason)
	cmd.Flags().StringVar(&input.Override, "override", "",
		"why its ACTIVE version is opened without reports and smokes that registered runners have signed")
	return cmd
}

func registerSandbox(t *command.Tool) *cobra.Command {
	cmd := registering(t, "Register an adapter of your own in the project's sandbox, or change its address",
		func(ctx context.Context, input gql.RegisterAdapterInput) (gql.Adapter, error) {
			project, err := t.ProjectID(ctx)
			if err != nil {
				return gql.Adapter{}, err
			}
			answer, err := gql.RegisterSandboxAdapter(ctx, t, gql.RegisterSandboxAdapterInput{ProjectId: project,
				Name: input.Name, Url: input.Url, Authority: input.Authority, NarrowCalls: input.NarrowCalls,
				ServiceAccountId: input.ServiceAccountId})
			return answer.RegisterSandboxAdapter, err
		})
	cmd.Long = `Register an adapter that only apps in the project's sandbox may name. Its name begins with the tenant's
short name and a hyphen; its address is https on the public Internet, or one that the operator allows for sandboxes.
Needs sandbox.manage.`
	return cmd
}

func listSandbox(t *command.Tool) *cobra.Command {
	return command.Pages(t, "list", "List the adapters of the project's sandbox", adapterTable, t.InProject,
		func(ctx context.Context, project string, first int, after string) (*gql.AdapterPage, error) {
			answer, err := gql.ListSandboxAdapters(ctx, t, project, first, after)
			return &answer.Adapters, err
		})
}
