package cli

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// projectsQuota shows a project's bounds, or sets those that are given.
func (t *tool) projectsQuota() *cobra.Command {
	var members, gpus, reason string
	cmd := t.command("quota", "Show or set how much the project may have", cobra.NoArgs, func(ctx context.Context, _ []string) error {
		c, id, err := t.scope(ctx)
		if err != nil {
			return err
		}
		project, err := t.projectByID(ctx, id)
		if err != nil {
			return err
		}
		if members == "" && gpus == "" {
			return t.showQuota(project)
		}
		input := gql.SetProjectQuotaInput{ProjectId: id, Reason: reason}
		if input.MaxMembers, err = bound("max-members", members, project.MaxMembers); err != nil {
			return err
		}
		if input.MaxGpus, err = bound("max-gpus", gpus, project.MaxGpus); err != nil {
			return err
		}
		answer, err := gql.SetProjectQuota(ctx, c, input)
		if err != nil {
			return err
		}
		return t.showQuota(&answer.SetProjectQuota)
	})
	cmd.Example = `  appctl projects quota
  appctl projects quota --max-members 64 --max-gpus none --reason "agreed for the quarter"`
	cmd.Flags().StringVar(&members, "max-members", "", `most members that its instances may have together, or "none"; as it is if not given`)
	cmd.Flags().StringVar(&gpus, "max-gpus", "", `most GPUs that its allocations may hold together, or "none"; as it is if not given`)
	cmd.Flags().StringVar(&reason, "reason", "", "why, kept in the audit; needed to set")
	return cmd
}

// bound reads a flag's number; none is no bound, and what is not given stays.
func bound(flag, text string, present *int) (*int, error) {
	switch text {
	case "":
		return present, nil
	case "none":
		return nil, nil
	}
	number, err := strconv.Atoi(text)
	if err != nil {
		return nil, usagef(`--%s %q: must be a whole number, or "none"`, flag, text)
	}
	return &number, nil
}

func (t *tool) projectByID(ctx context.Context, id string) (*gql.Project, error) {
	projects, err := t.Projects(ctx)
	if err != nil {
		return nil, err
	}
	for i := range projects {
		if projects[i].Id == id {
			return &projects[i], nil
		}
	}
	return nil, notFoundf("there is no project %q", id)
}

func (t *tool) showQuota(project *gql.Project) error {
	return t.show(view{JSON: project, IDs: []string{project.Id}, Page: func(p *render.Page) {
		p.Fields("Project", project.Id, "Slug", project.Slug, "Most members", boundText(project.MaxMembers), "Most GPUs", boundText(project.MaxGpus))
	}})
}

func boundText(bound *int) string {
	if bound == nil {
		return "no bound"
	}
	return fmt.Sprint(*bound)
}
