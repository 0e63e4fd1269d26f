package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

func (t *tool) projectsCommand() *cobra.Command {
	list := func(ctx context.Context, _ []string) error { return t.listProjects(ctx) }
	cmd := t.command("projects", "List the projects that you can see", cobra.NoArgs, list)
	cmd.AddCommand(
		t.command("list", "List the projects that you can see", cobra.NoArgs, list),
		t.command("permissions", "List the permission keys that you hold in the project", cobra.NoArgs,
			func(ctx context.Context, _ []string) error { return t.listPermissions(ctx) }),
		t.projectsQuota(),
	)
	return cmd
}

func (t *tool) listProjects(ctx context.Context) error {
	projects, err := t.Projects(ctx)
	if err != nil {
		return err
	}
	var rows [][]string
	var ids []string
	for _, project := range projects {
		rows = append(rows, []string{project.Id, project.Slug, project.DisplayName, project.TenantId})
		ids = append(ids, project.Id)
	}
	return t.show(view{JSON: projects, IDs: ids, Page: func(p *render.Page) {
		p.Table([]string{"ID", "SLUG", "NAME", "TENANT"}, rows)
	}})
}

func (t *tool) listPermissions(ctx context.Context) error {
	c, project, err := t.scope(ctx)
	if err != nil {
		return err
	}
	answer, err := gql.ListPermissions(ctx, c, project)
	if err != nil {
		return err
	}
	keys := answer.Viewer.Permissions
	return t.show(view{JSON: keys, IDs: keys, Page: func(p *render.Page) {
		for _, key := range keys {
			p.Line(key)
		}
	}})
}
