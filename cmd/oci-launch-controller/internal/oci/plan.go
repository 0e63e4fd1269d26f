package oci

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// plan predicts the effect of an operation. No one outside a container knows what it does at a moment, so stopping one
// is never called safe unless others go on.
func plan(_ context.Context, asked *adapter.PlanCall) (adapter.PlanAnswer, error) {
	safe := adapter.PlanAnswer{Verdict: adapter.VerdictSafe, Reversible: true, Message: "nothing that runs is affected"}
	if away := unreachable(asked); len(away.Reasons) > 0 {
		return away, nil
	}
	switch asked.Request.Kind {
	case adapter.InstanceDecommission:
		return stopping(len(asked.Of(component)), 0, false), nil
	case adapter.MemberRemove, adapter.MemberReplace:
		return stopping(len(asked.Targets()), others(asked), false), nil
	case adapter.MemberDrain:
		return stopping(len(asked.Targets()), others(asked), true), nil
	case adapter.InstanceUpgrade, adapter.InstanceRollback:
		answer := stopping(1, len(settled(asked.Of(component)))-1, true)
		answer.Message = "containers are changed one at a time, each when the one before is healthy; " + answer.Message
		return answer, nil
	case adapter.MembersAdd:
		safe.Message = "new containers are launched; the others continue"
	}
	return safe, nil
}

// others is how many containers go on while the targets stop.
func others(asked *adapter.PlanCall) int {
	return len(settled(asked.Of(component))) - len(asked.Targets())
}

// stopping is the plan of what stops containers.
func stopping(count, rest int, reversible bool) adapter.PlanAnswer {
	answer := adapter.PlanAnswer{Verdict: adapter.VerdictSafe, Reversible: reversible,
		Message: fmt.Sprintf("%d containers are stopped, %d continue", count, rest)}
	if rest < 1 {
		answer.Verdict = adapter.VerdictUnknown
		answer.Message = fmt.Sprintf("%d containers are stopped and none continues; their current work is lost", count)
		answer.Reasons = []adapter.PlanReason{{Code: "NONE_LEFT", Message: answer.Message}}
	}
	return answer
}

// unreachable is the plan of a change that would stop at a node that is away; without reasons when none would.
func unreachable(asked *adapter.PlanCall) adapter.PlanAnswer {
	answer := adapter.PlanAnswer{Verdict: adapter.VerdictUnsafe, Reversible: true,
		Message: "it would stop at a node that cannot be reached"}
	if kind := asked.Request.Kind; kind != adapter.InstanceUpgrade && kind != adapter.InstanceRollback {
		return adapter.PlanAnswer{}
	}
	for _, member := range settled(asked.Of(component)) {
		if !member.Node.IsReachable() {
			answer.Reasons = append(answer.Reasons, adapter.PlanReason{
				Code: adapter.CodeNodeUnreachable, Message: "the node of " + name(member) + " does not answer",
				Path: "members",
			})
		}
	}
	return answer
}
