package operation

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// Planned is the adapter's part of the plan that a change was accepted with.
type Planned struct {
	// Now is its answer about the change as it begins.
	Now PlannedAnswer `json:"now"`
	// AtDeadline is its answer about the change by force; nil unless force was chosen for the deadline.
	AtDeadline *PlannedAnswer `json:"atDeadline,omitempty"`
}

// PlannedAnswer is what a plan showed of an adapter's answer. Its texts are not kept: they change without effect.
type PlannedAnswer struct {
	Verdict    adapter.Verdict `json:"verdict"`
	Reversible bool            `json:"reversible"`
	Total      int             `json:"total"`
	// Work is the work that would be lost, as kind and id, sorted.
	Work []string `json:"work"`
}

// PlannedOf returns what a plan shows of an answer; nil for none.
func PlannedOf(answer *adapter.PlanAnswer) *PlannedAnswer {
	if answer == nil {
		return nil
	}
	out := &PlannedAnswer{
		Verdict: answer.Verdict, Reversible: answer.Reversible, Total: answer.WorkTotal, Work: []string{},
	}
	for _, work := range answer.WorkLost {
		out.Work = append(out.Work, work.Kind+"/"+work.ID)
	}
	slices.Sort(out.Work)
	return out
}

// Worse returns what has changed for the worse between the plan's answer and a later one; empty when nothing has.
// Unknown is never read as safe. By force an unsafe verdict is accepted, as the plan did.
func (p PlannedAnswer) Worse(now PlannedAnswer, forced bool) string {
	var more []string
	for _, work := range now.Work {
		if !slices.Contains(p.Work, work) {
			more = append(more, work)
		}
	}
	switch {
	case now.Verdict != p.Verdict && now.Verdict != adapter.VerdictSafe && !forced:
		return fmt.Sprintf("the adapter judges it %s now, and judged it %s in the plan", now.Verdict, p.Verdict)
	case len(more) > 0:
		return "work would be lost that the plan did not show: " + strings.Join(more[:min(len(more), shownWork)], ", ")
	case now.Total > p.Total:
		return fmt.Sprintf("%d pieces of work would be lost, and the plan showed %d", now.Total, p.Total)
	case p.Reversible && !now.Reversible && now.Verdict == adapter.VerdictSafe:
		return "the adapter reports that it cannot be undone any more"
	}
	return ""
}

// shownWork bounds the work that one sentence names.
const shownWork = 5
