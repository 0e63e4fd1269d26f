package operations

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/parts"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

var table = command.Table[gql.Operation]{
	Heading: []string{"ID", "KIND", "STATE", "DONE", "TARGET", "CREATED"},
	Row: func(op *gql.Operation) []string {
		target := cmp.Or(render.Text(op.InstanceId), render.Text(op.AllocationId))
		return []string{
			op.Id, string(op.Kind), string(op.State), fmt.Sprintf("%d%%", op.Percent), target,
			render.Time(&op.CreatedAt),
		}
	},
}

func view(op *gql.OperationDetail) command.View {
	return command.Detail(op, op.Id, func(p *render.Page) { page(p, op) })
}

// viewWithCost shows what an open operation has cost so far as well.
func viewWithCost(op *gql.ShowOperationOperation) command.View {
	return command.Detail(op, op.Id, func(p *render.Page) {
		page(p, &op.OperationDetail)
		if op.CostSoFar != nil {
			p.Section("Cost so far of the allocations that it works on")
			p.Line(parts.Money(op.CostSoFar))
		}
	})
}

// page shows an operation with what it waits for, its steps and its evidence.
func page(p *render.Page, op *gql.OperationDetail) {
	outcome, problem := "", ""
	if op.Outcome != nil {
		outcome = string(*op.Outcome)
	}
	message, told := op.Message, op.Steps
	if op.Error != nil {
		problem = fmt.Sprintf("%s (%s): %s", op.Error.Code, op.Error.Owner, op.Error.Message)
		message, told = once(op, problem)
	}
	p.Fields("Operation", op.Id, "Kind", string(op.Kind), "State", fmt.Sprintf("%s, %d%%", op.State, op.Percent),
		"Outcome", outcome, "Phase", op.Phase, "Message", message, "Error", problem,
		"Instance", render.Text(op.InstanceId),
		"Members", strings.Join(op.TargetIds, ", "), "Allocation", render.Text(op.AllocationId),
		"Requester", op.Requester.Name,
		"Reason", op.Reason, "Retry of", render.Text(op.RetryOf), "Force", forced(op), "Cancel", cancelRequest(op),
		"Correlation id", op.CorrelationId, "Created", render.Time(&op.CreatedAt), "Started", render.Time(op.StartedAt),
		"Ended", render.Time(op.EndedAt), "Deadline", render.Time(&op.Deadline))
	parts.Blockers.Under(p, "What it waits for", op.Blockers)
	parts.Work.Under(p, "Work that it waits for", op.WaitsFor)
	p.Section("Steps")
	steps.On(p, told)
	if evidence := render.Document(op.Evidence); evidence != "" {
		p.Section("Evidence")
		p.Line(evidence)
	}
}

// once leaves out of an operation's message and of its steps what its error says already.
func once(op *gql.OperationDetail, problem string) (message string, steps []gql.OperationStep) {
	said := func(text string) string {
		if text != "" && strings.Contains(problem, text) {
			return ""
		}
		return text
	}
	for _, step := range op.Steps {
		if step.State == gql.StepStateFailed {
			step.Message = cmp.Or(said(step.Message), "see the error above")
		}
		steps = append(steps, step)
	}
	return said(op.Message), steps
}

var steps = command.Table[gql.OperationStep]{
	Heading: []string{"STEP", "STATE", "TRIES", "MESSAGE"},
	Row: func(step *gql.OperationStep) []string {
		return []string{step.Name, string(step.State), fmt.Sprint(step.Attempt), step.Message}
	},
}

// forced returns whether and when an operation may lose work.
func forced(op *gql.OperationDetail) string {
	switch {
	case op.ForcedAt != nil:
		return "since " + render.Time(op.ForcedAt) + ", when its deadline passed"
	case op.Force:
		return "from the start"
	case op.OnDeadline == gql.DeadlineOutcomeForce && !client.Ended(op.State):
		return "once its deadline passes"
	default:
		return ""
	}
}

// cancelRequest returns who requested an operation's cancel, when, and what came of it.
func cancelRequest(op *gql.OperationDetail) string {
	if op.CancelRequestedAt == nil {
		return ""
	}
	request := "requested " + render.Time(op.CancelRequestedAt) + " by " + op.CancelRequester
	return render.Joined(": ", request, op.CancelMessage)
}
