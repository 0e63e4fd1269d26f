package operations

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// Triage returns the command that says of one id what is wrong and what to do next.
func Triage(t *command.Tool) *cobra.Command {
	cmd := command.Verb(t, "triage ID", "Show where a request is now, whose it is, and what to do next", viewTriage,
		func(ctx context.Context, args []string) (*gql.Triage, error) {
			answer, err := gql.ShowTriage(ctx, t, args[0])
			return &answer.Triage, err
		})
	cmd.Long = `Show what was requested, by whom, where it is now, whose it is, which branch of which runbook applies, and what to do
next. The ID is a correlation id, as every error has one, or the id of an operation or an instance; of an instance its newest
operation is meant. It answers while no worker runs.`
	return cmd
}

func viewTriage(found *gql.Triage) command.View {
	id := cmp.Or(render.Text(found.OperationId), found.CorrelationId)
	return command.Detail(found, id, func(p *render.Page) { pageTriage(p, found) })
}

// pageTriage shows the report: first where it is, then what to do, then what that rests on.
func pageTriage(p *render.Page, found *gql.Triage) {
	p.Fields("Requested", found.Asked, "By", found.Requester.Name, "At", render.Time(&found.At), "Reason", found.Reason,
		"Operation", render.Text(found.OperationId), "Instance", render.Text(found.InstanceId),
		"Allocation", render.Text(found.AllocationId), "Correlation id", found.CorrelationId,
		"Stands", string(found.Stands), "Cause", found.Code, "Owner", found.Owner, "Message", found.Message)
	if branch := found.Branch; branch != nil {
		p.Section("Runbook")
		p.Fields("Branch", branch.Ref, "Page", fmt.Sprintf("docs/runbooks/%s.md", branch.Runbook),
			"Check", cmp.Or(branch.Section, branch.Title), "Means", branch.Means, "Do", branch.Do)
	}
	if next := found.Next; next != nil {
		allowed := "you have it"
		if !next.Allowed {
			allowed = "you do not have it"
		}
		force := ""
		if next.Force {
			force = "yes"
		}
		p.Section("Next")
		p.Fields("Mutation", fmt.Sprintf("%s(%s: %s)", next.Mutation, next.Argument, next.Value), "Plan", next.Plan,
			"Force", force, "Key", fmt.Sprintf("%s: %s", next.PermissionKey, allowed))
	}
	p.Section("Evidence")
	triageEvidence.On(p, found.Evidence)
}

var triageEvidence = command.Table[gql.TriageEvidence]{
	Heading: []string{"AT", "KIND", "WHAT", "STATE", "ID", "MESSAGE"},
	Row: func(one *gql.TriageEvidence) []string {
		return []string{render.Time(&one.At), string(one.Kind), one.What, one.State, render.Text(one.Id), one.Message}
	},
}
