// Package calls answers what is asked about a cluster and is no operation: observations, plans, actions, and whether a
// dispatch is refused.
package calls

import (
	"context"

	"github.com/gpuaas/app-platform/cmd/rke2-self-managed-controller/internal/machine"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adapter/controller"
)

// states asks the first server that answers for all Nodes; ok is false when none does.
func states(ctx context.Context, call *adapter.Call) (list map[string]machine.State, ok bool) {
	for _, on := range machine.Reached(call.Of(machine.Server), nil) {
		bounded, cancel := context.WithTimeout(ctx, machine.AskTime)
		result, err := call.Try(bounded, on, "nodes", machine.NodesCommand(), adapter.Within(machine.AskTime))
		cancel()
		if err != nil || result.State != adapter.TaskSucceeded {
			continue
		}
		return machine.NodesOf(result.Stdout), true
	}
	return nil, false
}

// Observe asks one server for all Nodes, and every node how its RKE2 is.
func Observe(ctx context.Context, call *adapter.Call) (adapter.Observation, error) {
	nodes, answered := states(ctx, call)
	members := append(call.Of(machine.Server), call.Of(machine.Agent)...)
	return controller.Observe(ctx, members, "nodes are Ready",
		func(ctx context.Context, member adapter.Member) adapter.MemberObservation {
			bounded, cancel := context.WithTimeout(ctx, machine.AskTime)
			defer cancel()
			one := adapter.MemberObservation{ID: member.ID, Health: adapter.HealthUnknown}
			result, err := call.Try(bounded, member, "inspect", adapter.InspectProcess{Name: machine.Process},
				adapter.Within(machine.AskTime))
			state, ok := result.Process()
			node, known := nodes[machine.Name(member)]
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
			case node.Ready != "True":
				one.Health, one.Message = adapter.Unhealthy, "its node is not Ready: "+node.Reason
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
	for _, member := range append(call.Of(machine.Server), call.Of(machine.Agent)...) {
		if node, ok := nodes[machine.Name(member)]; ok {
			list = append(list, map[string]any{
				"name": machine.Name(member), "memberId": member.ID, "role": member.ComponentKey, "ready": node.Ready == "True",
				"reason": node.Reason, "cordoned": node.Cordoned == "true", "version": node.Version,
			})
		}
	}
	return map[string]any{"nodes": list}, nil
}

// listPods lists the pods that a drain would have to evict, by the word of one server.
func listPods(ctx context.Context, call *adapter.Call) (any, error) {
	servers := machine.Reached(call.Of(machine.Server), nil)
	if len(servers) == 0 {
		return nil, adapter.Fail("NO_SERVER", adapter.OwnerNode, true, "no server of the cluster can be asked")
	}
	list := []map[string]any{}
	for _, member := range append(call.Of(machine.Server), call.Of(machine.Agent)...) {
		result, err := call.Do(ctx, servers[0], "pods."+machine.Name(member), machine.PodsOn(machine.Name(member)),
			adapter.Within(machine.Quick))
		if err != nil {
			return nil, err
		}
		for _, one := range machine.PodsOf(result.Stdout) {
			list = append(list, map[string]any{"namespace": one.Namespace, "name": one.Name, "node": machine.Name(member),
				"memberId": member.ID, "since": one.Since})
		}
	}
	return map[string]any{"pods": list}, nil
}
