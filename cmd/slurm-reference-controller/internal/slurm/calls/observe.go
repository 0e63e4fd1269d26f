package calls

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/daemons"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/mend"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/report"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// observeScript prints the record's node lines, whether slurmctld answers, whether slurmdbd answers
// where there is one, and the nodes whose slurmd accepts no connection: slurmctld itself notices
// that only after half a minute.
const observeScript = report.RecordScript + `
echo "=== slurmctld"; if ` + daemons.SlurmctldUp + `; then echo up; fi
echo "=== slurmdbd"; if ! grep -q accounting_storage/slurmdbd ` + layout.SlurmConfPath + `; then echo off; ` +
	`elif ` + daemons.SlurmdbdReady + `; then echo up; fi
echo "=== silent"
grep -E "^NodeName=.* NodeAddr=" ` + layout.SlurmConfPath + ` | ` +
	`sed -E "s/^NodeName=([^ ]+) NodeAddr=([^ ]+) .* Port=([0-9]+) .*/\\1 \\2 \\3/" | {
    while read -r name address port; do
        timeout 3 bash -c ": < /dev/tcp/$address/$port" 2> /dev/null || echo "$name" &
    done
    wait
}
echo "=== nodes"; exec timeout 15 sinfo -a -N -h -o "` + report.NodeFormat + `"`

// stateScript prints whether the controller still has what slurmctld saved: it runs when slurmctld does not answer.
const stateScript = `if test -s ` + daemons.SavedState + `; then echo kept; else echo gone; fi`

// observed is what observeScript printed.
type observed struct {
	members             map[string]string // by node
	slurmctld, slurmdbd string            // "up", "off" or empty
	silent              map[string]bool   // nodes
	nodes               []report.Node
}

// parseObserved reads the output of observeScript. Workers are the members of the instance.
func parseObserved(text string, workers []adapter.Member) observed {
	part := make(map[string]string)
	section := "record"
	for _, line := range strings.SplitAfter(text, "\n") {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "=== "); ok {
			section = name
			continue
		}
		part[section] += line
	}
	seen := observed{
		members: report.MembersByNode(part["record"], workers), slurmctld: strings.TrimSpace(part["slurmctld"]),
		slurmdbd: strings.TrimSpace(part["slurmdbd"]), silent: map[string]bool{},
	}
	for _, name := range strings.Fields(part["silent"]) {
		seen.silent[name] = true
	}
	seen.nodes = report.ParseNodes(part["nodes"], seen.members)
	return seen
}

// Observe returns a function that reads the state of the controller and its workers, and passes workers that Slurm has
// given up to tell. When the controller does not answer, the workers are unknown: nothing has reported on them.
func Observe(tell func(mend.Lost)) func(context.Context, *adapter.Call) (adapter.Observation, error) {
	return func(ctx context.Context, call *adapter.Call) (adapter.Observation, error) {
		seen, err := observe(ctx, call, tell)
		if err == nil {
			lookAtLogins(ctx, call, &seen)
		}
		return seen, err
	}
}

func observe(ctx context.Context, call *adapter.Call, tell func(mend.Lost)) (adapter.Observation, error) {
	controllers, workers := call.Of(layout.ComponentController), call.Of(layout.ComponentWorker)
	seen := adapter.Observation{Health: adapter.HealthUnknown, Message: "the cluster has no controller"}
	if len(controllers) == 0 {
		return seen, nil
	}
	result, err := onController(ctx, call, "observe", observeCommand())
	if err != nil {
		return seen, err
	}
	if result.State != adapter.TaskSucceeded && result.ExitCode == nil {
		return unanswered(controllers[0], workers, adapter.HealthUnknown, "the controller's node did not answer"), nil
	}
	found := parseObserved(result.Stdout, workers)
	if found.slurmctld != "up" {
		seen := unanswered(controllers[0], workers, adapter.Unhealthy, "slurmctld does not answer")
		seen.Lost, seen.Message = lost(ctx, call, seen.Message)
		return seen, nil
	}
	for _, one := range found.nodes {
		if one.MemberID != "" && one.GivenUp() {
			tell(mend.Lost{InstanceID: call.Instance.ID, MemberID: one.MemberID,
				Says: one.Name + " is " + one.State + " (" + one.Reason + ")"})
		}
	}
	return judge(controllers[0], workers, found), nil
}

// lost reports that the cluster cannot come back: the controller has lost what slurmctld saved, and a recovery would
// start another cluster, without the queue. Nil while it may come back, and without an answer: an instance of a
// manifest that does not name the command refuses it. With a backup it may, which the message says.
func lost(ctx context.Context, call *adapter.Call, message string) (*adapter.OperationError, string) {
	result, err := onController(ctx, call, "state", stateCommand(detailOf(call)))
	if err != nil || result.State != adapter.TaskSucceeded {
		return nil, message
	}
	switch strings.TrimSpace(result.Stdout) {
	case "backed":
		return nil, message + "; its saved state is lost, and there are backups: restore one by state.restore"
	case "gone":
		return &adapter.OperationError{Code: "STATE_GONE", Owner: adapter.OwnerNode,
			Message: "slurmctld is down, and its saved state is lost: the queue cannot be restored"}, message
	}
	return nil, message
}

// unanswered returns the observation of a cluster whose controller did not answer.
func unanswered(
	controller adapter.Member, workers []adapter.Member, health adapter.Health, message string,
) adapter.Observation {
	seen := adapter.Observation{Health: health, Message: message}
	seen.Members = append(seen.Members, adapter.MemberObservation{ID: controller.ID, Health: health, Message: message})
	for _, worker := range workers {
		seen.Members = append(
			seen.Members,
			adapter.MemberObservation{ID: worker.ID, Health: adapter.HealthUnknown,
				Message: "slurmctld does not answer"},
		)
	}
	return seen
}

// judge returns the observation of a cluster whose slurmctld answered. The instance is as well as its
// worst part, and unhealthy only when no worker is healthy.
func judge(controller adapter.Member, workers []adapter.Member, found observed) adapter.Observation {
	seen := adapter.Observation{
		Health: adapter.Healthy, Members: []adapter.MemberObservation{judgeController(controller, found)},
	}
	states := make(map[string]report.Node, len(found.nodes))
	for _, one := range found.nodes {
		if one.MemberID != "" {
			states[one.MemberID] = one
		}
	}
	good := 0
	inState := make(map[string]int) // workers, by the state of their Slurm node
	var absent []string
	for _, worker := range workers {
		one, known := states[worker.ID]
		judged := judgeWorker(worker, one, known, found.silent[one.Name])
		if judged.Health == adapter.Healthy {
			good++
		}
		if !known {
			absent = append(absent, worker.ID)
			one.State = "not in Slurm"
		}
		inState[one.State]++
		seen.Members = append(seen.Members, judged)
	}
	seen.Message = fmt.Sprintf("slurmctld is up, %d of %d workers are healthy", good, len(workers)) + drift(
		found, workers, absent,
	)
	switch {
	case good == 0:
		seen.Health = adapter.Unhealthy
	case good < len(workers) || seen.Members[0].Health != adapter.Healthy || strings.Contains(seen.Message, "; "):
		seen.Health = adapter.Degraded
	}
	seen.Roles = roles(seen.Members[0], workers, good, inState)
	return seen
}

// roles sums up the controller by its observation, and the workers by the states of their Slurm nodes, such as "1
// allocated, 2 idle".
func roles(controller adapter.MemberObservation, workers []adapter.Member, good int,
	inState map[string]int) []adapter.RoleObservation {
	list := []adapter.RoleObservation{
		{ComponentKey: layout.ComponentController, Health: controller.Health, Summary: controller.Message},
	}
	if len(workers) == 0 {
		return list
	}
	var parts []string
	for _, state := range slices.Sorted(maps.Keys(inState)) {
		parts = append(parts, fmt.Sprintf("%d %s", inState[state], state))
	}
	health := adapter.Degraded
	switch good {
	case len(workers):
		health = adapter.Healthy
	case 0:
		health = adapter.Unhealthy
	}
	return append(list, adapter.RoleObservation{
		ComponentKey: layout.ComponentWorker, Health: health, Summary: strings.Join(parts, ", "),
	})
}

// judgeController returns the observation of a controller whose slurmctld answered.
func judgeController(controller adapter.Member, found observed) adapter.MemberObservation {
	switch found.slurmdbd {
	case "up":
		return adapter.MemberObservation{ID: controller.ID, Health: adapter.Healthy,
			Message: "slurmctld and slurmdbd are up"}
	case "off":
		return adapter.MemberObservation{
			ID: controller.ID, Health: adapter.Healthy, Message: "slurmctld is up; accounting is off, as configured",
		}
	}
	return adapter.MemberObservation{
		ID: controller.ID, Health: adapter.Degraded, Message: "slurmctld is up; slurmdbd does not answer",
	}
}

// judgeWorker returns a worker's observation: its Slurm node, whether Slurm knows it, and whether its
// slurmd accepts no connection.
func judgeWorker(worker adapter.Member, one report.Node, known, silent bool) adapter.MemberObservation {
	judged := adapter.MemberObservation{ID: worker.ID, Health: adapter.Unhealthy}
	if !known { // somebody took it out: slurmd asks in vain until a recovery brings it in again
		judged.Message, judged.Status = "not in Slurm", adapter.MemberFailed
		return judged
	}
	judged.Health, judged.Message = one.Health(), "Slurm node "+one.Name+" is "+one.State
	if one.Reason != "" {
		judged.Message += " (" + one.Reason + ")"
	}
	if silent {
		judged.Health, judged.Message = adapter.Unhealthy, judged.Message+"; its slurmd does not accept connections"
	}
	return judged
}

// drift names the nodes that only Slurm has and the members that only the instance has.
func drift(found observed, workers []adapter.Member, absent []string) (text string) {
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
		text += "; nodes of Slurm that are not members: " + strings.Join(slices.Sorted(maps.Keys(strangers)), ", ")
	}
	if len(absent) > 0 {
		text += "; members that are not in Slurm: " + strings.Join(absent, ", ")
	}
	return text
}
