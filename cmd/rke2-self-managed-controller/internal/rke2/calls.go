package rke2

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adapter/controller"
)

// labelPrefix tells the labels that come from the platform from those of others.
const labelPrefix = "member.gpuaas.app/"

// labelsTemplate prints a line for each Node: its name and the keys of its labels.
const labelsTemplate = `{{range .items}}{{.metadata.name}}` +
	`{{range $k, $v := .metadata.labels}} {{$k}}{{end}}{{"\n"}}{{end}}`

// label gives the targets' Nodes the whole new set of labels, and takes from them those that the platform gave
// before.
func label(ctx context.Context, w work) error {
	var change adapter.LabelChange
	if err := w.Change(&change); err != nil {
		return err
	}
	by, err := w.witness(nil)
	if err != nil {
		return err
	}
	text, err := w.ask(ctx, by, "labels", kubectl("get", "nodes", "-o", "go-template="+labelsTemplate))
	if err != nil {
		return err
	}
	for _, member := range w.Targets() {
		words := []string{"--overwrite", "label", "node", nodeName(member)}
		for line := range strings.Lines(text) {
			keys := strings.Fields(line)
			for _, key := range keys[1:] {
				short, ours := strings.CutPrefix(key, labelPrefix)
				if _, kept := change.Labels[short]; keys[0] == nodeName(member) && ours && !kept {
					words = append(words, key+"-")
				}
			}
		}
		for key, value := range change.Labels {
			words = append(words, labelPrefix+key+"="+value)
		}
		slices.Sort(words[4:])
		if _, err := w.Do(ctx, by, "label."+nodeName(member), kubectl(words...)); err != nil {
			return err
		}
	}
	return w.Evidence("labels", change.Labels)
}

// nodeState is what the API says of a Node.
type nodeState struct{ ready, reason, cordoned, version string }

func nodesCommand() adapter.RunCommand {
	return kubectl("get", "nodes", "-o", "go-template="+nodesTemplate)
}

// states asks the first server that answers for all Nodes; ok is false when none does.
func states(ctx context.Context, call *adapter.Call) (list map[string]nodeState, ok bool) {
	for _, on := range reached(call.Of(server), nil) {
		bounded, cancel := context.WithTimeout(ctx, askTime)
		result, err := call.Try(bounded, on, "nodes", nodesCommand(), adapter.Within(askTime))
		cancel()
		if err != nil || result.State != adapter.TaskSucceeded {
			continue
		}
		list = map[string]nodeState{}
		for line := range strings.Lines(result.Stdout) {
			if f := strings.Fields(strings.ReplaceAll(line, "<no value>", "false")); len(f) >= 5 {
				list[f[0]] = nodeState{ready: f[1], reason: f[2], cordoned: f[3], version: f[4]}
			}
		}
		return list, true
	}
	return nil, false
}

// observe asks one server for all Nodes, and every node how its RKE2 is.
func observe(ctx context.Context, call *adapter.Call) (adapter.Observation, error) {
	nodes, answered := states(ctx, call)
	members := append(call.Of(server), call.Of(agent)...)
	return controller.Observe(ctx, members, "nodes are Ready",
		func(ctx context.Context, member adapter.Member) adapter.MemberObservation {
			bounded, cancel := context.WithTimeout(ctx, askTime)
			defer cancel()
			one := adapter.MemberObservation{ID: member.ID, Health: adapter.HealthUnknown}
			result, err := call.Try(bounded, member, "inspect", adapter.InspectProcess{Name: process}, adapter.Within(askTime))
			state, ok := result.Process()
			node, known := nodes[nodeName(member)]
			switch {
			case err != nil || !ok || result.State != adapter.TaskSucceeded:
				one.Message = "its node did not answer"
			case state.State == "absent" || state.State == "exited":
				one.Health, one.Status, one.Message = adapter.Unhealthy, adapter.MemberFailed, "its RKE2 is "+state.State
			case state.State != "running":
				one.Health, one.Message = adapter.Unhealthy, "its RKE2 is "+state.State
			case !answered:
				one.Message = "its RKE2 runs, but no server answers"
			case !known:
				one.Health, one.Message = adapter.Unhealthy, "its RKE2 runs, but the cluster has no such node"
			case node.ready != "True":
				one.Health, one.Message = adapter.Unhealthy, "its node is not Ready: "+node.reason
			default:
				one.Health, one.Message = adapter.Healthy, "its node is Ready"
			}
			return one
		})
}

func listNodes(ctx context.Context, call *adapter.Call) (any, error) {
	nodes, answered := states(ctx, call)
	if !answered {
		return nil, adapter.Fail("NO_SERVER", adapter.OwnerNode, true, "no server of the cluster answers")
	}
	list := []map[string]any{}
	for _, member := range append(call.Of(server), call.Of(agent)...) {
		if node, ok := nodes[nodeName(member)]; ok {
			list = append(list, map[string]any{
				"name": nodeName(member), "memberId": member.ID, "role": member.ComponentKey, "ready": node.ready == "True",
				"reason": node.reason, "cordoned": node.cordoned == "true", "version": node.version,
			})
		}
	}
	return map[string]any{"nodes": list}, nil
}

// listPods lists the pods that a drain would have to evict, by the word of one server.
func listPods(ctx context.Context, call *adapter.Call) (any, error) {
	servers := reached(call.Of(server), nil)
	if len(servers) == 0 {
		return nil, adapter.Fail("NO_SERVER", adapter.OwnerNode, true, "no server of the cluster can be asked")
	}
	list := []map[string]any{}
	for _, member := range append(call.Of(server), call.Of(agent)...) {
		result, err := call.Do(ctx, servers[0], "pods."+nodeName(member), podsOn(nodeName(member)), adapter.Within(quick))
		if err != nil {
			return nil, err
		}
		for _, one := range podsOf(result.Stdout) {
			list = append(list, map[string]any{"namespace": one.Namespace, "name": one.Name, "node": nodeName(member),
				"memberId": member.ID, "since": one.Since})
		}
	}
	return map[string]any{"pods": list}, nil
}

// plan says what an operation would come to.
func plan(ctx context.Context, asked *adapter.PlanCall) (adapter.PlanAnswer, error) {
	safe := adapter.PlanAnswer{Verdict: adapter.VerdictSafe, Reversible: true, Message: "nothing that runs is touched"}
	members, now := asked.Targets(), asked.Request.Force
	switch asked.Request.Kind {
	case adapter.InstanceDecommission:
		members, now = append(asked.Of(server), asked.Of(agent)...), true
	case adapter.MemberRemove:
		if err := quorate(asked.Request.Members, asked.Request.Targets); err != nil {
			return adapter.PlanAnswer{}, err
		}
	case adapter.MemberReplace, adapter.MemberDrain:
	default:
		return safe, nil
	}
	answer := adapter.PlanAnswer{Verdict: adapter.VerdictSafe, Message: "no pods would be evicted",
		Reversible: asked.Request.Kind == adapter.MemberDrain}
	pods, ok := running(ctx, &asked.Call, members)
	switch {
	case !ok:
		answer.Verdict, answer.Message = adapter.VerdictUnknown, "no server can be asked what runs there"
		answer.Reasons = []adapter.PlanReason{{Code: adapter.CodeNodeUnreachable, Message: answer.Message, Path: "members"}}
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

// running are the pods on members, oldest first; ok is false when no server told.
func running(ctx context.Context, call *adapter.Call, members []adapter.Member) (list []adapter.Work, ok bool) {
	servers := reached(call.Of(server), nil)
	if len(servers) == 0 {
		return nil, false
	}
	for _, member := range members {
		bounded, cancel := context.WithTimeout(ctx, askTime)
		result, err := call.Try(bounded, servers[0], "pods."+nodeName(member), podsOn(nodeName(member)),
			adapter.Within(askTime))
		cancel()
		if err != nil || result.State != adapter.TaskSucceeded {
			return nil, false
		}
		for _, one := range podsOf(result.Stdout) {
			list = append(list, one.work(member, nil))
		}
	}
	slices.SortStableFunc(list, func(a, b adapter.Work) int { return a.Since.Compare(b.Since) })
	return list, true
}
