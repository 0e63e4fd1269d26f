// Package calls answers the calls about a cluster that are not operations: observations, plans, actions, and whether a
// dispatch is refused.
package calls

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

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

// Observe asks one server for all Nodes and for etcd's members, and every node how its RKE2 is.
func Observe(ctx context.Context, call *adapter.Call) (adapter.Observation, error) {
	nodes, answered := states(ctx, call)
	members := append(call.Of(machine.Server), call.Of(machine.Agent)...)
	seen, err := observeMembers(ctx, call, members, nodes, answered)
	if err == nil && answered {
		judge(&seen, call, lookAtPlane(ctx, call), time.Now())
	}
	return seen, err
}

// renewal is how long before their end certificates are reported: RKE2 renews them when it starts.
const renewal = 30 * 24 * time.Hour

// lookAtPlane reads the state of the control plane from the first server that answers.
func lookAtPlane(ctx context.Context, call *adapter.Call) (plane machine.Plane) {
	for _, on := range machine.Reached(call.Of(machine.Server), nil) {
		bounded, cancel := context.WithTimeout(ctx, machine.AskTime)
		result, err := call.Try(bounded, on, "plane."+on.ID, machine.LookAtPlane(on), adapter.Within(machine.AskTime))
		cancel()
		if err == nil && result.State == adapter.TaskSucceeded {
			if plane = machine.PlaneOf(result.Stdout); len(plane.Voters) > 0 {
				return plane
			}
		}
	}
	return plane
}

// judge adds to an observation what the whole must know of its servers: how many votes etcd can lose now, members that
// were never started, and certificates near their end.
func judge(seen *adapter.Observation, call *adapter.Call, plane machine.Plane, now time.Time) {
	healthy, votes := map[string]bool{}, len(plane.Voters)
	for _, one := range seen.Members {
		healthy[one.ID] = one.Health == adapter.Healthy
	}
	up := 0
	for _, one := range plane.Voters {
		for _, member := range call.Of(machine.Server) {
			if one.Of(member) && healthy[member.ID] {
				up++
			}
		}
	}
	var troubles []string
	spare := up - machine.Majority(votes)
	if votes > 1 && spare < 1 {
		troubles = append(troubles,
			fmt.Sprintf("%d of %d votes are up and etcd needs %d: no server may be lost, recover one",
				up, votes, machine.Majority(votes)))
	}
	if len(plane.Waiting) > 0 {
		troubles = append(troubles, fmt.Sprintf("%d of etcd's members do not vote", len(plane.Waiting)))
	}
	if !plane.Until.IsZero() && plane.Until.Sub(now) < renewal {
		troubles = append(troubles,
			fmt.Sprintf("certificates end on %s: restart the servers, by an upgrade or one by one, "+
				"which renews them", plane.Until.Format(time.DateOnly)))
	}
	for i, role := range seen.Roles {
		if role.ComponentKey == machine.Server && votes > 0 {
			seen.Roles[i].Summary += fmt.Sprintf("; %d votes, %d may be lost", votes, max(spare, 0))
			// numbers and text encode
			seen.Roles[i].Detail, _ = json.Marshal(map[string]any{"votes": votes, "votesUp": up,
				"majority": machine.Majority(votes), "certificatesUntil": plane.Until})
		}
	}
	if len(troubles) == 0 {
		return
	}
	seen.Message += "; " + strings.Join(troubles, "; ")
	if seen.Health == adapter.Healthy {
		seen.Health = adapter.Degraded
	}
	for i, role := range seen.Roles {
		if role.ComponentKey == machine.Server && role.Health == adapter.Healthy {
			seen.Roles[i].Health = adapter.Degraded
		}
	}
}

// observeMembers asks every node how its RKE2 is, beside what the cluster says of its Node.
func observeMembers(ctx context.Context, call *adapter.Call, members []adapter.Member, nodes map[string]machine.State,
	answered bool) (adapter.Observation, error) {
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
				one.Health, one.Status, one.Message = adapter.Unhealthy, adapter.MemberFailed,
					"its RKE2 is "+state.State
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
				"name": machine.Name(member), "memberId": member.ID, "role": member.ComponentKey,
				"ready":  node.Ready == "True",
				"reason": node.Reason, "cordoned": node.Cordoned == "true", "version": node.Version,
			})
		}
	}
	return map[string]any{"nodes": list}, nil
}

// listPods lists the pods that a drain would have to evict, by the word of one server: so many at most, and it says
// where there are more.
func listPods(ctx context.Context, call *adapter.Call) (any, error) {
	servers := machine.Reached(call.Of(machine.Server), nil)
	if len(servers) == 0 {
		return nil, adapter.Fail("NO_SERVER", adapter.OwnerNode, true, "no server of the cluster is reachable")
	}
	list, more := []map[string]any{}, false
	for _, member := range append(call.Of(machine.Server), call.Of(machine.Agent)...) {
		if len(list) > maxPods {
			break
		}
		result, err := call.Do(ctx, servers[0], "pods."+machine.Name(member), machine.PodsOn(machine.Name(member)),
			adapter.Within(machine.Quick))
		if err != nil {
			return nil, err
		}
		pods, cut := machine.PodsOf(result)
		more = more || cut
		for _, one := range pods {
			list = append(list, map[string]any{"namespace": one.Namespace, "name": one.Name,
				"node": machine.Name(member), "memberId": member.ID, "since": one.Since})
		}
	}
	listed := min(len(list), maxPods)
	return map[string]any{"pods": list[:listed], "more": more || listed < len(list)}, nil
}
