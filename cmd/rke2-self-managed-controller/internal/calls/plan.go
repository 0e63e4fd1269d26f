package calls

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gpuaas/app-platform/cmd/rke2-self-managed-controller/internal/machine"
	"github.com/gpuaas/app-platform/cmd/rke2-self-managed-controller/internal/release"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// Plan says what an operation would come to.
func Plan(ctx context.Context, asked *adapter.PlanCall) (adapter.PlanAnswer, error) {
	safe := adapter.PlanAnswer{Verdict: adapter.VerdictSafe, Reversible: true, Message: "nothing that runs is affected"}
	members, now := asked.Targets(), asked.Request.Force
	switch asked.Request.Kind {
	case adapter.InstanceDecommission:
		members, now = append(asked.Of(machine.Server), asked.Of(machine.Agent)...), true
	case adapter.MemberRemove:
		if err := quorate(asked.Request.Members, asked.Request.Targets); err != nil {
			return adapter.PlanAnswer{}, err
		}
	case adapter.InstanceUpgrade, adapter.InstanceRollback:
		return planVersions(ctx, asked)
	case adapter.MemberReplace, adapter.MemberDrain:
	default:
		return safe, nil
	}
	answer := adapter.PlanAnswer{Verdict: adapter.VerdictSafe, Message: "no pods would be evicted",
		Reversible: asked.Request.Kind == adapter.MemberDrain}
	pods, ok := running(ctx, &asked.Call, members)
	switch {
	case !ok:
		answer.Verdict, answer.Message = adapter.VerdictUnknown, "no server reports what runs there"
		answer.Reasons = []adapter.PlanReason{{Code: adapter.CodeNodeUnreachable, Message: answer.Message,
			Path: "members"}}
	case len(pods) > 0 && now:
		answer.Verdict, answer.WorkTotal = adapter.VerdictUnsafe, len(pods)
		answer.WorkLost = pods[:min(len(pods), adapter.MaxWork)]
		answer.Message = fmt.Sprintf("%d pods would be lost", len(pods))
		answer.Reasons = []adapter.PlanReason{{Code: "WORK_LOST", Message: answer.Message}}
	case len(pods) > 0:
		answer.Message = fmt.Sprintf("%d pods are evicted, as far as their budgets allow", len(pods))
		answer.Reasons = []adapter.PlanReason{{Code: "WORK_AWAITED", Message: answer.Message}}
	}
	return answer, nil
}

// running are the pods on members, oldest first; ok is false when no server answered.
func running(ctx context.Context, call *adapter.Call, members []adapter.Member) (list []adapter.Work, ok bool) {
	servers := machine.Reached(call.Of(machine.Server), nil)
	if len(servers) == 0 {
		return nil, false
	}
	for _, member := range members {
		bounded, cancel := context.WithTimeout(ctx, machine.AskTime)
		result, err := call.Try(bounded, servers[0], "pods."+machine.Name(member), machine.PodsOn(machine.Name(member)),
			adapter.Within(machine.AskTime))
		cancel()
		if err != nil || result.State != adapter.TaskSucceeded {
			return nil, false
		}
		pods, _ := machine.PodsOf(result) // of more than a node keeps of an output, a part is named
		for _, one := range pods {
			list = append(list, one.Work(member, nil))
		}
	}
	slices.SortStableFunc(list, func(a, b adapter.Work) int { return a.Since.Compare(b.Since) })
	return list, true
}

// planVersions says what a change of version would come to: what restarts, and of a way back past a release what is
// lost.
func planVersions(ctx context.Context, asked *adapter.PlanCall) (adapter.PlanAnswer, error) {
	var config machine.Config
	if err := decode(asked.Request.Instance.Config, &config); err != nil {
		return adapter.PlanAnswer{}, err
	}
	servers, seen := machine.Reached(asked.Of(machine.Server), nil), map[string]machine.State{}
	to, answered := release.Find(config.Release)
	if len(servers) > 0 && !answered {
		said, err := asked.Try(ctx, servers[0], "release", machine.VersionOf(machine.Config{}),
			adapter.Within(machine.AskTime))
		if err == nil {
			to, answered = release.Find(said.Stdout)
		}
	}
	if answered {
		seen, answered = states(ctx, &asked.Call)
	}
	if !answered {
		return unknown("no server reports which release it runs"), nil
	}
	from, step, err := machine.StepOf(seen, to)
	var refused adapter.OperationError
	if errors.As(err, &refused) {
		return adapter.PlanAnswer{}, adapter.Reject(refused.Code, "change.to.config.release", "%s", refused.Message)
	}
	if step == release.Back && asked.Request.Kind == adapter.InstanceUpgrade {
		return adapter.PlanAnswer{}, adapter.Reject("DOWNGRADE", "change.to.config.release",
			"the cluster runs %s, and etcd does not go back to %s by an upgrade: roll back", from, to)
	}
	if step == release.Back {
		return planBack(ctx, asked, from, to)
	}
	agents, batch := len(asked.Of(machine.Agent)), max(config.UpgradeBatch, 1)
	return adapter.PlanAnswer{Verdict: adapter.VerdictSafe, Reversible: true, Message: fmt.Sprintf(
		"etcd is saved, then %d servers restart with %s one by one, then %d agents, %d at a time; pods keep running",
		len(asked.Of(machine.Server)), to, agents, min(batch, max(agents, 1)))}, nil
}

// planBack states what a rollback to an older release loses: every change of the cluster since its snapshot. It is
// allowed: a rollback knows no force, and its purpose is worth the loss, which is stated.
func planBack(ctx context.Context, asked *adapter.PlanCall, from, to release.Release) (adapter.PlanAnswer, error) {
	list, ok := allSnapshots(ctx, &asked.Call)
	if !ok {
		return unknown("not every server reports its snapshots"), nil
	}
	held, ok := machine.Newest(list, machine.UpgradeName(to.String()))
	if !ok {
		return adapter.PlanAnswer{}, adapter.Reject("NO_SNAPSHOT", "change.to", "%s", machine.NoSnapshot(to).Error())
	}
	message := fmt.Sprintf("%s does not go back to %s in place: etcd is restored from %s on %s, and all that was "+
		"created, changed or deleted in the cluster since %s is lost; the API does not answer meanwhile",
		from, to, held.Name, machine.Name(held.Server), held.At.Format(time.RFC3339))
	if away := awayOf(asked.Of(machine.Server)); len(away) > 0 {
		message += "; to be recovered afterwards, since their nodes do not answer: " + machine.Names(away)
	}
	lost := adapter.Work{Kind: "state", ID: held.Name, Name: "changes since " + held.At.Format(time.RFC3339),
		MemberID: held.Server.ID, Since: held.At,
		Message: "changes of the cluster since the snapshot from before the upgrade"}
	return adapter.PlanAnswer{Verdict: adapter.VerdictSafe, Message: message, WorkLost: []adapter.Work{lost},
		WorkTotal: 1, Reasons: []adapter.PlanReason{{Code: "STATE_LOST", Message: message, Path: "change.to"}}}, nil
}

// awayOf returns the members whose nodes cannot be reached.
func awayOf(members []adapter.Member) (list []adapter.Member) {
	for _, member := range members {
		if !member.Node.IsReachable() {
			list = append(list, member)
		}
	}
	return list
}

func unknown(why string) adapter.PlanAnswer {
	return adapter.PlanAnswer{Verdict: adapter.VerdictUnknown, Message: why,
		Reasons: []adapter.PlanReason{{Code: adapter.CodeNodeUnreachable, Message: why, Path: "members"}}}
}

// allSnapshots are those of every server whose node can be reached, also where no API answers any more; ok is false
// when a server that serves did not answer.
func allSnapshots(ctx context.Context, call *adapter.Call) (list []machine.Snapshot, ok bool) {
	for _, on := range call.Of(machine.Server) {
		if !serves(on) && (on.Status != string(adapter.MemberFailed) || !on.Node.IsReachable()) {
			continue
		}
		result, err := call.Try(ctx, on, "snapshots."+on.ID, machine.ListSnapshots(), adapter.Within(machine.AskTime))
		if err == nil && result.State == adapter.TaskSucceeded {
			list = append(list, machine.SnapshotsOf(on, result.Stdout)...)
		} else if serves(on) {
			return nil, false
		}
	}
	return list, true
}
