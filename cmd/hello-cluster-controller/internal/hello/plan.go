package hello

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// plan predicts the effect of an operation. It counts only work that would really be lost: a drain waits for work, and
// a change of version leaves it alone.
func plan(ctx context.Context, asked *adapter.PlanCall) (adapter.PlanAnswer, error) {
	kind, force := asked.Request.Kind, asked.Request.Force
	safe := adapter.PlanAnswer{Verdict: adapter.VerdictSafe, Reversible: true}
	switch kind {
	case adapter.InstanceDecommission:
		return leaving(ctx, asked, asked.Of(component), true)
	case adapter.MemberRemove, adapter.MemberReplace:
		return leaving(ctx, asked, asked.Targets(), force)
	case adapter.MemberDrain:
		answer, err := leaving(ctx, asked, asked.Targets(), force)
		answer.Reversible = true
		return answer, err
	case adapter.InstanceUpgrade, adapter.InstanceRollback:
		return changing(ctx, asked), nil
	case adapter.MembersAdd:
		safe.Message = "new peers join; the others continue"
	case adapter.MemberCordon:
		safe.Message = "the peer takes no new work; its running work continues"
	default:
		safe.Message = "nothing that runs is affected"
	}
	return safe, nil
}

// answerOf is a node's answer about a peer's work; heard is false when none came.
type answerOf struct {
	peer  adapter.Member
	work  []adapter.Work
	heard bool
}

// ask reads the work of all peers at once.
func ask(ctx context.Context, call *adapter.Call, peers []adapter.Member) []answerOf {
	answers := make([]answerOf, len(peers))
	var group errgroup.Group
	group.SetLimit(16)
	for i, peer := range peers {
		answers[i].peer = peer
		if !peer.Node.IsReachable() {
			continue
		}
		group.Go(func() error {
			bounded, cancel := context.WithTimeout(ctx, askTime)
			defer cancel()
			result, err := call.Try(bounded, peer, "work", verb("list"), adapter.Within(askTime))
			answers[i].heard = err == nil && result.State == adapter.TaskSucceeded
			answers[i].work = workOf(peer, result.Stdout)
			return nil
		})
	}
	_ = group.Wait() // no function of the group fails
	return answers
}

// leaving is the plan of an operation that takes peers out of service: now, or when their work has ended.
func leaving(ctx context.Context, asked *adapter.PlanCall, peers []adapter.Member, now bool) (adapter.PlanAnswer,
	error) {
	var work []adapter.Work
	var silent []string
	for _, one := range ask(ctx, &asked.Call, peers) {
		work = append(work, one.work...)
		if !one.heard {
			silent = append(silent, name(one.peer))
		}
	}
	answer := adapter.PlanAnswer{Verdict: adapter.VerdictSafe, Message: "nothing runs there"}
	switch {
	case len(work) > 0 && now:
		answer.Verdict, answer.WorkLost, answer.WorkTotal = adapter.VerdictUnsafe,
			oldest(work, adapter.MaxWork), len(work)
		answer.Message = fmt.Sprintf("%d pieces of work would be lost", len(work))
		answer.Reasons = append(answer.Reasons, adapter.PlanReason{Code: "WORK_LOST", Message: answer.Message})
	case len(work) > 0:
		answer.Message = fmt.Sprintf("it waits for %d pieces of work to end", len(work))
		answer.Reasons = append(answer.Reasons, adapter.PlanReason{Code: "WORK_AWAITED", Message: answer.Message})
	}
	if len(silent) > 0 {
		slices.Sort(silent)
		if answer.Verdict == adapter.VerdictSafe {
			answer.Verdict, answer.Message = adapter.VerdictUnknown, "the work of some peers is not known"
		}
		answer.Reasons = append(answer.Reasons, adapter.PlanReason{
			Code: adapter.CodeNodeUnreachable, Message: "no answer about the work of: " + strings.Join(silent, ", "),
			Path: "members",
		})
	}
	return answer, nil
}

// changing is the plan of a change of version, which needs an answer of every peer that serves.
func changing(ctx context.Context, asked *adapter.PlanCall) adapter.PlanAnswer {
	answer := adapter.PlanAnswer{
		Verdict: adapter.VerdictSafe, Reversible: true,
		Message: "peers are started again one at a time; work goes on meanwhile",
	}
	for _, one := range ask(ctx, &asked.Call, serving(asked.Of(component))) {
		if !one.heard {
			answer.Verdict, answer.Message = adapter.VerdictUnsafe, "it would stop at a peer that cannot be reached"
			answer.Reasons = append(answer.Reasons, adapter.PlanReason{
				Code: adapter.CodeNodeUnreachable, Message: "the node of " + name(one.peer) + " does not answer",
				Path: "members",
			})
		}
	}
	return answer
}
