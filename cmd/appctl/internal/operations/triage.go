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

// Triage returns the command that says of one id what is wrong and what to do next, does that, and packs a support
// bundle.
func Triage(t *command.Tool) *cobra.Command {
	var f doFlags
	var pack bundleFlags
	cmd := t.Command("triage ID", "Show the state of a request, who must act on it, and what to do next",
		func(ctx context.Context, args []string) error {
			if pack.wanted() {
				return pack.run(ctx, t, args[0])
			}
			answer, err := gql.ShowTriage(ctx, t, args[0])
			if err != nil {
				return err
			}
			if f.do || f.planOnly {
				return f.run(ctx, t, &answer.Triage)
			}
			return t.Show(viewTriage(&answer.Triage))
		})
	cmd.Long = `Show what was requested, by whom, its state, who must act on it, which branch of which runbook applies,
and what to do next. The ID is a correlation id, which every error has, or the id of an operation, an instance, a
member, an allocation, a node task, an event, an entry of the audit, or any object that the audit has an entry about. If
several operations match, the newest is shown. It works while no worker runs.

--do carries out the next action: it shows the plan, asks, and sends the plan's hash, so that nothing is done if
something has changed since. --bundle writes a file that you can give to people who help; --preview shows what it would
contain.`
	f.register(cmd)
	pack.register(cmd)
	cmd.MarkFlagsMutuallyExclusive("do", "plan", "bundle", "preview")
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
		"Now", string(found.Stands), "Cause", found.Code, "Owner", found.Owner, "Message", found.Message,
		"Cost so far", costSoFar(found))
	if branch := found.Branch; branch != nil {
		p.Section("Runbook")
		p.Fields("Branch", branch.Ref, "Page", fmt.Sprintf("docs/runbooks/%s.md", branch.Runbook),
			"Check", cmp.Or(branch.Section, branch.Title), "Means", branch.Means, "Do", branch.Do)
	}
	if next := found.Next; next != nil {
		pageNext(p, found, next)
	}
	p.Section("Evidence")
	triageEvidence.On(p, found.Evidence)
	if len(found.Others) > 0 {
		p.Section("Other operations with this correlation id")
		triageOthers.On(p, found.Others)
	}
	if len(found.Links) > 0 {
		p.Section("Links")
		for _, link := range found.Links {
			p.Fields(link.Name, link.Url)
		}
	}
}

// pageNext shows the action, by what it is carried out, and whether the caller may.
func pageNext(p *render.Page, found *gql.Triage, next *gql.TriageAction) {
	allowed := "you have it"
	if !next.Allowed {
		allowed = "you do not have it"
	}
	p.Section("Next")
	p.Fields("Mutation", fmt.Sprintf("%s(%s: %s)", next.Mutation, next.Argument, next.Value), "Plan", next.Plan,
		"Force", render.Yes(next.Force), "Key", fmt.Sprintf("%s: %s", next.PermissionKey, allowed),
		"Command", byHand(next), "Or", render.If(next.Allowed, "appctl triage "+about(found)+" --do"))
}

// about is an id by which the same report is found again.
func about(found *gql.Triage) string {
	if found.Stands == gql.TriageStandUnwell { // what is wrong with an instance is found by its own id
		return render.Text(found.InstanceId)
	}
	return cmp.Or(render.Text(found.OperationId), found.CorrelationId)
}

func costSoFar(found *gql.Triage) string {
	if found.CostSoFar == nil {
		return ""
	}
	return found.CostSoFar.Amount + " " + found.CostSoFar.Currency
}

var triageOthers = command.Table[gql.TriageOther]{
	Heading: []string{"OPERATION", "KIND", "STATE", "AT"},
	Row: func(one *gql.TriageOther) []string {
		return []string{one.OperationId, string(one.Kind), string(one.State), render.Time(&one.At)}
	},
}

var triageEvidence = command.Table[gql.TriageEvidence]{
	Heading: []string{"AT", "KIND", "WHAT", "STATE", "ID", "MESSAGE", "SEE"},
	Row: func(one *gql.TriageEvidence) []string {
		return []string{render.Time(&one.At), string(one.Kind), one.What, one.State, render.Text(one.Id), one.Message,
			one.Link}
	},
}
