package identity

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// projects lists projects, by itself and as a group's list.
func projects(t *command.Tool) *cobra.Command {
	list := func(use string) *cobra.Command {
		return command.Verb(t, use, "List the projects that you can see", projectTable.View,
			func(ctx context.Context, _ []string) ([]gql.Project, error) { return t.Projects(ctx) })
	}
	cmd := list("projects")
	cmd.AddCommand(list("list"), listPermissions(t), quota(t))
	return cmd
}

var projectTable = command.Table[gql.Project]{
	Heading: []string{"ID", "SLUG", "NAME", "TENANT"},
	Row: func(project *gql.Project) []string {
		return []string{project.Id, project.Slug, project.DisplayName, project.TenantId}
	},
}

// listPermissions returns the command that writes one permission key a line.
func listPermissions(t *command.Tool) *cobra.Command {
	view := func(keys []string) command.View {
		return command.View{JSON: keys, IDs: keys, Page: func(p *render.Page) {
			for _, key := range keys {
				p.Line(key)
			}
		}}
	}
	return command.Of(t, "permissions", "List the permission keys that you have in the project", t.InProject, view,
		func(ctx context.Context, project string, _ []string) ([]string, error) {
			answer, err := gql.ListPermissions(ctx, t, project)
			return answer.Viewer.Permissions, err
		})
}

// quota shows a project's bounds, or sets those that are given.
func quota(t *command.Tool) *cobra.Command {
	var members, gpus, gib, reason string
	cmd := command.Of(t, "quota", "Show or set the quotas of the project", t.InProject, viewQuota,
		func(ctx context.Context, id string, _ []string) (*gql.Project, error) {
			project, err := projectByID(ctx, t, id)
			if err != nil || members == "" && gpus == "" && gib == "" {
				return project, err
			}
			input := gql.SetProjectQuotaInput{ProjectId: id, Reason: reason}
			if input.MaxMembers, err = bound("max-members", members, project.MaxMembers); err != nil {
				return nil, err
			}
			if input.MaxGpus, err = bound("max-gpus", gpus, project.MaxGpus); err != nil {
				return nil, err
			}
			if input.MaxVolumeGiB, err = bound("max-volume-gib", gib, project.MaxVolumeGiB); err != nil {
				return nil, err
			}
			answer, err := gql.SetProjectQuota(ctx, t, input)
			return &answer.SetProjectQuota, err
		})
	cmd.Example = `  appctl projects quota
  appctl projects quota --max-members 64 --max-gpus none --reason "agreed for the quarter"`
	flags := cmd.Flags()
	flags.StringVar(&members, "max-members", "",
		`most members that its instances may have together, or "none"; unchanged if not given`)
	flags.StringVar(&gpus, "max-gpus", "",
		`most GPUs that its allocations may have together, or "none"; unchanged if not given`)
	flags.StringVar(&gib, "max-volume-gib", "",
		`most GiB that its volumes may be sized to together, or "none"; unchanged if not given`)
	flags.StringVar(&reason, "reason", "", "why, kept in the audit; needed to set")
	return cmd
}

// bound reads a bound from a flag: "none" is nil, which is unbounded, and an empty text leaves the present bound.
func bound(flag, text string, present *int) (*int, error) {
	switch text {
	case "":
		return present, nil
	case "none":
		return nil, nil
	}
	number, err := strconv.Atoi(text)
	if err != nil {
		return nil, command.Usagef(`--%s %q: must be a whole number, or "none"`, flag, text)
	}
	return &number, nil
}

func projectByID(ctx context.Context, t *command.Tool, id string) (*gql.Project, error) {
	projects, err := t.Projects(ctx)
	if err != nil {
		return nil, err
	}
	for i := range projects {
		if projects[i].Id == id {
			return &projects[i], nil
		}
	}
	return nil, command.NotFoundf("there is no project %q", id)
}

func viewQuota(project *gql.Project) command.View {
	return command.Fields(project, project.Id, "Project", project.Id, "Slug", project.Slug,
		"Most members", render.Bound(project.MaxMembers, "no bound"), "Most GPUs",
		render.Bound(project.MaxGpus, "no bound"),
		"Most GiB of volumes", render.Bound(project.MaxVolumeGiB, "no bound"))
}
