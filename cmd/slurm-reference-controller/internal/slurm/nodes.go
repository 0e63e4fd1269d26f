package slurm

import (
	"context"
	"fmt"
	"strings"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// node is one worker as Slurm sees it.
type node struct {
	Name      string `json:"name"`
	MemberID  string `json:"memberId"`
	State     string `json:"state"`
	CPUs      int    `json:"cpus"`
	MemoryMiB int    `json:"memoryMiB"`
	Partition string `json:"partition"`
	Reason    string `json:"reason"`
}

// nodeFormat is sinfo's format; the reason comes last because only it may hold a bar.
const nodeFormat = "%N|%T|%c|%m|%P|%E"

// parseNodes reads what "sinfo -N -h -o nodeFormat" printed.
func parseNodes(text string, workers []adapter.Member) []node {
	nodes := []node{}
	seen := make(map[string]bool)
	for _, line := range strings.Split(text, "\n") {
		part := strings.SplitN(strings.TrimSpace(line), "|", 6)
		if len(part) != 6 || seen[part[0]] {
			continue
		}
		seen[part[0]] = true
		nodes = append(nodes, node{
			Name: part[0], MemberID: memberOf(part[0], workers), State: part[1], CPUs: number(part[2]),
			MemoryMiB: number(strings.TrimSuffix(part[3], "+")), Partition: strings.TrimSuffix(part[4], "*"), Reason: nodeReason(part[5]),
		})
	}
	return nodes
}

func nodeReason(text string) string {
	if text == "none" {
		return ""
	}
	return text
}

func memberOf(name string, workers []adapter.Member) string {
	index, ok := workerIndex(name)
	if !ok {
		return ""
	}
	for _, worker := range workers {
		if worker.Index == index {
			return worker.ID
		}
	}
	return ""
}

// health judges a worker by its Slurm state. A trailing * means that it does not answer.
func health(state string) adapter.Health {
	if strings.HasSuffix(state, "*") {
		return adapter.Unhealthy
	}
	switch strings.TrimRight(state, "+~#!%$@^-") {
	case "idle", "mixed", "allocated", "completing", "reserved":
		return adapter.Healthy
	case "draining", "drained", "maint", "planned":
		return adapter.Degraded
	}
	return adapter.Unhealthy
}

func listNodes(ctx context.Context, call *adapter.Call) (any, error) {
	result, err := onController(ctx, call, "nodes", adapter.RunCommand{Command: []string{"sinfo", "-N", "-h", "-o", nodeFormat}})
	if err != nil {
		return nil, err
	}
	if result.State != adapter.TaskSucceeded {
		return nil, unavailable(result)
	}
	return map[string]any{"nodes": parseNodes(result.Stdout, call.Of(componentWorker))}, nil
}

// observe asks the controller about itself and its workers. A controller that does not answer makes
// the workers unknown: nobody has said how they are.
func observe(ctx context.Context, call *adapter.Call) (adapter.Observation, error) {
	controllers, workers := call.Of(componentController), call.Of(componentWorker)
	seen := adapter.Observation{Health: adapter.HealthUnknown, Message: "the cluster has no controller"}
	if len(controllers) == 0 {
		return seen, nil
	}
	script := `scontrol ping | grep -q "is UP" || exit 9; exec sinfo -N -h -o "` + nodeFormat + `"`
	result, err := onController(ctx, call, "observe", shell(script))
	if err != nil {
		return seen, err
	}
	if result.State != adapter.TaskSucceeded {
		return unanswered(controllers[0], workers, result), nil
	}
	return judge(controllers[0], workers, parseNodes(result.Stdout, workers)), nil
}

func unanswered(controller adapter.Member, workers []adapter.Member, result adapter.TaskResult) adapter.Observation {
	seen := adapter.Observation{Health: adapter.Unhealthy, Message: "slurmctld does not answer"}
	own := adapter.MemberObservation{ID: controller.ID, Health: adapter.Unhealthy, Message: "slurmctld does not answer"}
	if result.ExitCode == nil {
		// The command itself did not run: that says nothing about slurmctld.
		seen.Health, own.Health = adapter.HealthUnknown, adapter.HealthUnknown
		seen.Message, own.Message = "the controller's node did not answer", "its node did not answer"
	}
	seen.Members = append(seen.Members, own)
	for _, worker := range workers {
		seen.Members = append(seen.Members, adapter.MemberObservation{ID: worker.ID, Health: adapter.HealthUnknown, Message: "slurmctld cannot be asked"})
	}
	return seen
}

func judge(controller adapter.Member, workers []adapter.Member, nodes []node) adapter.Observation {
	seen := adapter.Observation{Health: adapter.Healthy}
	seen.Members = append(seen.Members, adapter.MemberObservation{ID: controller.ID, Health: adapter.Healthy, Message: "slurmctld is up"})
	states := make(map[string]string, len(nodes))
	for _, one := range nodes {
		states[one.MemberID] = one.State
	}
	good := 0
	for _, worker := range workers {
		one := adapter.MemberObservation{ID: worker.ID, Health: adapter.Unhealthy, Message: "not registered with slurmctld"}
		if state, ok := states[worker.ID]; ok {
			one.Health, one.Message = health(state), "Slurm node "+workerName(worker.Index)+" is "+state
		}
		if one.Health == adapter.Healthy {
			good++
		}
		seen.Members = append(seen.Members, one)
	}
	switch {
	case good == 0:
		seen.Health = adapter.Unhealthy
	case good < len(workers):
		seen.Health = adapter.Degraded
	}
	seen.Message = fmt.Sprintf("slurmctld is up, %d of %d workers are healthy", good, len(workers))
	return seen
}
