package operations

import (
	"fmt"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/parts"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

func planView(plan *gql.Plan) command.View {
	return command.Detail(plan, plan.Hash, func(p *render.Page) { pagePlan(p, plan) })
}

// pagePlan shows what a verb would do, and what would be lost by it.
func pagePlan(p *render.Page, plan *gql.Plan) {
	p.Fields("Plan", fmt.Sprintf("%s of %s (%s)", plan.Kind, plan.Instance.Name, plan.Instance.Id), "Verdict",
		accepted(plan.Allowed),
		"Work lost", lost(plan.WorkLostTotal), "At the deadline", atDeadline(plan), "Can be taken back",
		render.Joined(": ", render.YesNo(plan.Reversible), plan.Reversal),
		"Supersedes", superseded(plan.Supersedes), "Cost", hourly(plan.Cost), "Change", render.Document(plan.Change),
		"Hash", plan.Hash)
	p.Section("Affected members")
	touched.On(p, plan.Members)
	pageVolumes(p, plan.Members)
	parts.Work.Under(p, "Work that would be lost", plan.WorkLost)
	parts.Work.Under(p, "Work that would be lost at the deadline", plan.WorkAtRisk)
	if plan.Impact.AttachedTotal > 0 {
		p.Section("Projects that it serves")
		parts.Impact.On(p, plan.Impact.Projects)
	}
	pageCost(p, plan.Cost)
	p.Section("Verdicts")
	p.Table([]string{"BY", "OUTCOME", "REASON"}, verdictRows(plan.Verdicts))
}

// lost returns how much work would be lost.
func lost(total *int) string {
	switch {
	case total == nil:
		return "unknown"
	case *total == 0:
		return "none"
	default:
		return render.Plural(*total, "piece") + " of work"
	}
}

// atDeadline returns how long it has and what happens then.
func atDeadline(plan *gql.Plan) string {
	after := "after " + (time.Duration(plan.DeadlineSeconds) * time.Second).String()
	switch {
	case plan.OnDeadline == gql.DeadlineOutcomeForce:
		return after + " it is forced; work that would be lost now: " + lost(plan.WorkAtRiskTotal)
	case plan.KeepFailed:
		return after + " it fails, and members that could not join are kept"
	}
	return after + " it fails"
}

// superseded returns the operations that would make way.
func superseded(operations []gql.Operation) string {
	var texts []string
	for _, op := range operations {
		texts = append(texts, fmt.Sprintf("%s %s", op.Kind, op.Id))
	}
	return strings.Join(texts, ", ")
}

// touched is the table of the members that a plan touches; one that it adds has neither an id nor a status yet.
var touched = command.Table[gql.PlannedMember]{
	Heading: []string{"ACTION", "COMPONENT", "MEMBER", "STATUS", "ALLOCATION", "CAPACITY", "NODE", "ANSWERS", "WALLS"},
	Row: func(planned *gql.PlannedMember) []string {
		name, id, status, allocation, node := planned.ComponentKey, "new", "", "to be requested", ""
		if member := planned.Member; member != nil {
			name, id, status = parts.MemberName(member.ComponentKey, member.Index), member.Id, string(member.Status)
			allocation, node = "", parts.NodeName(member.Node)
		}
		if planned.Allocation != nil {
			allocation = planned.Allocation.Name
		}
		return []string{
			string(planned.Action), name, id, status, allocation, capacity(planned.Capacity), node,
			render.YesNo(planned.Reachable), parts.Walls(planned.Profile, planned.IsolationClass),
		}
	},
}

// pageVolumes shows which volumes members would have, once for each component.
func pageVolumes(p *render.Page, members []gql.PlannedMember) {
	var rows [][]string
	shown := map[string]bool{}
	for _, planned := range members {
		for _, use := range planned.Volumes {
			if key := planned.ComponentKey + " " + use.Slot; !shown[key] {
				shown[key] = true
				rows = append(rows, []string{planned.ComponentKey, use.Slot, use.VolumeId, use.Path,
					parts.Access(use.ReadOnly)})
			}
		}
	}
	if len(rows) > 0 {
		p.Section("Volumes that they would have")
		p.Table([]string{"COMPONENT", "SLOT", "VOLUME", "PATH", "ACCESS"}, rows)
	}
}

// capacity returns what would be rented for a member, with its list price.
func capacity(chosen *gql.PlannedCapacity) string {
	if chosen == nil {
		return ""
	}
	text := render.Joined(" ", string(chosen.Shape), chosen.Sku, chosen.Region)
	if chosen.HourlyPrice == nil {
		return text
	}
	return fmt.Sprintf("%s, %s %s an hour", text, chosen.HourlyPrice.Amount, chosen.HourlyPrice.Currency)
}

// verdictRows returns a row for each reason of a verdict, and one for a verdict without any.
func verdictRows(verdicts []gql.Verdict) (rows [][]string) {
	for _, verdict := range verdicts {
		if len(verdict.Reasons) == 0 {
			rows = append(rows, []string{string(verdict.Source), string(verdict.Outcome), ""})
		}
		for _, reason := range verdict.Reasons {
			text := reason.Message + " (" + reason.Code + ")"
			rows = append(rows, []string{string(verdict.Source), string(verdict.Outcome), text})
		}
	}
	return rows
}
