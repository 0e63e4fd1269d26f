package identity

import (
	"cmp"
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/lookup"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

func viewTenant(made gql.Tenant) command.View {
	return command.One(made, made.Id, "Slug", made.Slug, "Name", made.DisplayName)
}

// listTenants lists the platform's tenants, for its staff.
func listTenants(t *command.Tool) *cobra.Command {
	return command.Pages(t, "list", "List the platform's tenants", tenantTable, nil,
		func(ctx context.Context, _ string, first int, after string) (*gql.TenantPage, error) {
			answer, err := gql.ListTenants(ctx, t, first, after)
			return &answer.Tenants, err
		})
}

var tenantTable = command.Table[gql.Tenant]{
	Heading: []string{"ID", "SLUG", "NAME", "CREATED"},
	Row: func(tenant *gql.Tenant) []string {
		return []string{tenant.Id, tenant.Slug, tenant.DisplayName, render.Time(&tenant.CreatedAt)}
	},
}

func createTenant(t *command.Tool) *cobra.Command {
	var input gql.CreateTenantInput
	cmd := command.Verb(t, "create SLUG", "Create a tenant", viewTenant,
		func(ctx context.Context, args []string) (gql.Tenant, error) {
			input.Slug, input.DisplayName = args[0], cmp.Or(input.DisplayName, args[0])
			answer, err := gql.CreateTenant(ctx, t, input)
			return answer.CreateTenant, err
		})
	cmd.Flags().StringVar(&input.DisplayName, "display-name", "", "display name; the slug if not given")
	cmd.Flags().BoolVar(&input.Platform, "platform", false,
		"the platform's own, where system apps run: its people are the staff, and it is not billed")
	command.KeyFlag(cmd, &input.IdempotencyKey)
	return cmd
}

func renameTenant(t *command.Tool) *cobra.Command {
	return command.Reasoned(t, "rename TENANT NAME", "Give a tenant, by id, another display name", viewTenant,
		func(ctx context.Context, args []string, reason string) (gql.Tenant, error) {
			input := gql.UpdateTenantInput{TenantId: args[0], DisplayName: args[1], Reason: reason}
			answer, err := gql.UpdateTenant(ctx, t, input)
			return answer.UpdateTenant, err
		})
}

// setDomains returns the command that sets which domains of addresses are a tenant's.
func setDomains(t *command.Tool) *cobra.Command {
	var domains []string
	cmd := command.Reasoned(t, "domains TENANT",
		"Set which verified domains of addresses are a tenant's, by id: its people need no invitation",
		func(made gql.TenantDomains) command.View {
			return command.One(made, made.Id, "Slug", made.Slug, "Domains", strings.Join(made.Domains, " "))
		},
		func(ctx context.Context, args []string, reason string) (gql.TenantDomains, error) {
			input := gql.SetTenantDomainsInput{TenantId: args[0], Domains: append([]string{}, domains...),
				Reason: reason}
			answer, err := gql.SetTenantDomains(ctx, t, input)
			return answer.SetTenantDomains, err
		})
	cmd.Flags().StringSliceVar(&domains, "domain", nil,
		"a domain, such as example.com; repeat or separate by commas; without it the tenant has none")
	return cmd
}

func viewProject(made gql.Project) command.View {
	return command.One(made, made.Id, "Slug", made.Slug, "Name", made.DisplayName)
}

// createProject returns the command that makes a project in the caller's tenant, unless another is given.
func createProject(t *command.Tool) *cobra.Command {
	var input gql.CreateProjectInput
	cmd := command.Verb(t, "create SLUG", "Create a project",
		func(made gql.Project) command.View {
			return command.One(made, made.Id, "Slug", made.Slug, "Name", made.DisplayName, "Tenant", made.TenantId)
		},
		func(ctx context.Context, args []string) (none gql.Project, err error) {
			if input.TenantId, err = lookup.Tenant(ctx, t, input.TenantId); err != nil {
				return none, err
			}
			input.Slug, input.DisplayName = args[0], cmp.Or(input.DisplayName, args[0])
			answer, err := gql.CreateProject(ctx, t, input)
			return answer.CreateProject, err
		})
	cmd.Flags().StringVar(&input.DisplayName, "display-name", "", "display name; the slug if not given")
	cmd.Flags().StringVar(&input.TenantId, "tenant", "", "tenant's id; your own if not given")
	command.KeyFlag(cmd, &input.IdempotencyKey)
	return cmd
}

func renameProject(t *command.Tool) *cobra.Command {
	var input gql.UpdateProjectInput
	cmd := command.Of(t, "rename NAME", "Give the project another display name", t.InProject, viewProject,
		func(ctx context.Context, project string, args []string) (gql.Project, error) {
			input.ProjectId, input.DisplayName = project, args[0]
			answer, err := gql.UpdateProject(ctx, t, input)
			return answer.UpdateProject, err
		})
	command.ReasonFlag(cmd, &input.Reason)
	return cmd
}

func deleteProject(t *command.Tool) *cobra.Command {
	var reason string
	cmd := command.Of(t, "delete", "Delete the empty project; its accounts, keys, roles and webhooks end at once",
		t.InProject, viewProject, func(ctx context.Context, project string, _ []string) (gql.Project, error) {
			answer, err := gql.DeleteProject(ctx, t, project, reason)
			return answer.DeleteProject, err
		})
	command.NeededReasonFlag(cmd, &reason)
	return cmd
}
