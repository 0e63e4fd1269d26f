package calls

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/daemons"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/report"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// observeScript prints the record's node lines, what slurmctld says, whether slurmdbd answers where
// there is one, and the nodes whose slurmd takes no connection: slurmctld itself notices only after
// half a minute.
const observeScript = report.RecordScript + `
echo "=== slurmctld"; if ` + daemons.SlurmctldUp + `; then echo up; fi
echo "=== slurmdbd"; if ! grep -q accounting_storage/slurmdbd ` + layout.SlurmConfPath + `; then echo off; elif ` + daemons.SlurmdbdReady + `; then echo up; fi
echo "=== silent"
grep -E "^NodeName=.* NodeAddr=" ` + layout.SlurmConfPath + ` | sed -E "s/^NodeName=([^ ]+) NodeAddr=([^ ]+) .* Port=([0-9]+) .*/\\1 \\2 \\3/" | {
    while read -r name address port; do
        timeout 3 bash -c ": < /dev/tcp/$address/$port" 2> /dev/null || echo "$name" &
    done
    wait
}
echo "=== nodes"; exec timeout 15 sinfo -a -N -h -o "` + report.NodeFormat + `"`

// sighting is what observeScript printed.
type sighting struct {
	members             map[string]string // by node
	slurmctld, slurmdbd string            // "up", "off" or empty
	silent              map[string]bool   // nodes
	nodes               []report.Node
}

func parseSighting(text string, workers []adapter.Member) sighting {
	part := make(map[string]string)
	section := "record"
	for _, line := range strings.SplitAfter(text, "\n") {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "=== "); ok {
			section = name
			continue
		}
		part[section] += line
	}
	seen := sighting{
		members: report.MembersByNode(part["record"], workers), slurmctld: strings.TrimSpace(part["slurmctld"]),
		slurmdbd: strings.TrimSpace(part["slurmdbd"]), silent: map[string]bool{},
	}
	for _, name := range strings.Fields(part["silent"]) {
		seen.silent[name] = true
	}
	seen.nodes = report.ParseNodes(part["nodes"], seen.members)
	return seen
}

// Observe asks the controller about itself and its workers. A controller that does not answer makes
// the workers unknown: nobody has said how they are.
func Observe(ctx context.Context, call *adapter.Call) (adapter.Observation, error) {
	controllers, workers := call.Of(layout.ComponentController), call.Of(layout.ComponentWorker)
	seen := adapter.Observation{Health: adapter.HealthUnknown, Message: "the cluster has no controller"}
	if len(controllers) == 0 {
		return seen, nil
	}
	result, err := onController(ctx, call, "observe", daemons.Shell(observeScript))
	if err != nil {
		return seen, err
	}
	if result.State != adapter.TaskSucceeded && result.ExitCode == nil {
		return unanswered(controllers[0], workers, adapter.HealthUnknown, "the controller's node did not answer"), nil
	}
	found := parseSighting(result.Stdout, workers)
	if found.slurmctld != "up" {
		return unanswered(controllers[0], workers, adapter.Unhealthy, "slurmctld does not answer"), nil
	}
	return judge(controllers[0], workers, found), nil
}

func unanswered(controller adapter.Member, workers []adapter.Member, health adapter.Health, message string) adapter.Observation {
	seen := adapter.Observation{Health: health, Message: message}
	seen.Members = append(seen.Members, adapter.MemberObservation{ID: controller.ID, Health: health, Message: message})
	for _, worker := range workers {
		seen.Members = append(seen.Members, adapter.MemberObservation{ID: worker.ID, Health: adapter.HealthUnknown, Message: "slurmctld cannot be asked"})
	}
	return seen
}

func judge(controller adapter.Member, workers []adapter.Member, found sighting) adapter.Observation {
	seen := adapter.Observation{Health: adapter.Healthy, Members: []adapter.MemberObservation{judgeController(controller, found)}}
	states := make(map[string]report.Node, len(found.nodes))
	for _, one := range found.nodes {
		if one.MemberID != "" {
			states[one.MemberID] = one
		}
	}
	good := 0
	var absent []string
	for _, worker := range workers {
		one, known := states[worker.ID]
		judged := judgeWorker(worker, one, known, found.silent[one.Name])
		if judged.Health == adapter.Healthy {
			good++
		}
		if !known {
			absent = append(absent, worker.ID)
		}
		seen.Members = append(seen.Members, judged)
	}
	seen.Message = fmt.Sprintf("slurmctld is up, %d of %d workers are healthy", good, len(workers)) + drift(found, workers, absent)
	switch {
	case good == 0:
		seen.Health = adapter.Unhealthy
	case good < len(workers) || seen.Members[0].Health != adapter.Healthy || strings.Contains(seen.Message, "; "):
		seen.Health = adapter.Degraded
	}
	return seen
}

func judgeController(controller adapter.Member, found sighting) adapter.MemberObservation {
	switch found.slurmdbd {
	case "up":
		return adapter.MemberObservation{ID: controller.ID, Health: adapter.Healthy, Message: "slurmctld and slurmdbd are up"}
	case "off":
		return adapter.MemberObservation{ID: controller.ID, Health: adapter.Healthy, Message: "slurmctld is up; accounting is off, as configured"}
	}
	return adapter.MemberObservation{ID: controller.ID, Health: adapter.Degraded, Message: "slurmctld is up; slurmdbd does not answer"}
}

func judgeWorker(worker adapter.Member, one report.Node, known, silent bool) adapter.MemberObservation {
	judged := adapter.MemberObservation{ID: worker.ID, Health: adapter.Unhealthy, Message: "not in Slurm"}
	if !known {
		return judged
	}
	judged.Health, judged.Message = one.Health(), "Slurm node "+one.Name+" is "+one.State
	if one.Reason != "" {
		judged.Message += " (" + one.Reason + ")"
	}
	if silent {
		judged.Health, judged.Message = adapter.Unhealthy, judged.Message+"; its slurmd takes no connection"
	}
	return judged
}

// drift names what Slurm has and the instance has not, and the other way round.
func drift(found sighting, workers []adapter.Member, absent []string) (text string) {
	members := make(map[string]bool, len(workers))
	for _, worker := range workers {
		members[worker.ID] = true
	}
	strangers := make(map[string]bool)
	for _, one := range found.nodes {
		if !members[one.MemberID] {
			strangers[one.Name] = true
		}
	}
	if len(strangers) > 0 {
		text += "; nodes of Slurm that are no members: " + strings.Join(slices.Sorted(maps.Keys(strangers)), ", ")
	}
	if len(absent) > 0 {
		text += "; members that are not in Slurm: " + strings.Join(absent, ", ")
	}
	return text
}
