package calls

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/report"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// planTime bounds what a plan reads from the controller: a person waits for it.
const planTime = 15 * time.Second

// planScript prints which member is which node, then the jobs that have not ended.
const planScript = `export TZ=UTC
` + report.RecordScript + `
echo "=== jobs"
jobs=$(timeout 10 squeue -a -h -t PENDING,RUNNING,COMPLETING,SUSPENDED,STOPPED,CONFIGURING -S V -O "$1") || exit 1
echo "$jobs" | head -n 150
echo "=== total"
echo "$jobs" | grep -c .
true`

// load is the cluster's work as a plan needs it.
type load struct {
	members map[string]string // by node
	jobs    []report.Job      // at most 150
	total   int
}

// Plan returns what an operation would do to running work. It changes nothing.
func Plan(ctx context.Context, call *adapter.PlanCall) (adapter.PlanAnswer, error) {
	answer := adapter.PlanAnswer{Verdict: adapter.VerdictSafe, Reversible: true}
	kind := call.Request.Kind
	switch kind {
	case adapter.InstanceCreate:
		answer.Message = "a new cluster: nothing runs yet"
		return answer, nil
	case adapter.MemberCordon, adapter.MemberUncordon, adapter.MemberLabel, adapter.MemberRecover:
		answer.Message = "running jobs are not affected"
		return answer, nil
	}
	if kind == adapter.MemberReplace && slices.ContainsFunc(call.Targets(), isController) {
		answer.Reversible = false
		answer.Message = "queue and accounts continue from their volume; jobs run on, and submissions wait meanwhile"
		return answer, nil
	}
	found, err := readLoad(ctx, call)
	if err != nil {
		return adapter.PlanAnswer{}, err
	}
	if found == nil {
		return silentController(kind), nil
	}
	switch kind {
	case adapter.MembersAdd:
		answer.Message = "running jobs continue; slurmctld restarts, which delays submissions by some seconds"
	case adapter.InstanceUpgrade, adapter.InstanceRollback:
		return planVersions(call, *found)
	case adapter.InstanceDecommission:
		answer = ending(*found, found.jobs, found.total)
	default:
		answer = leaving(call, *found)
	}
	return answer, nil
}

func isController(member adapter.Member) bool {
	return member.ComponentKey == layout.ComponentController
}

// silentController returns the answer when it is unknown what runs.
func silentController(kind adapter.Kind) adapter.PlanAnswer {
	return adapter.PlanAnswer{
		Verdict: adapter.VerdictUnknown, Reversible: reversible(kind), Message: "slurmctld does not report what runs",
		Reasons: []adapter.PlanReason{{Code: "CONTROLLER_SILENT", Message: "slurmctld does not report what runs"}},
	}
}

// reversible reports whether an operation deletes nothing for good: a worker that leaves takes the
// output of its jobs along.
func reversible(kind adapter.Kind) bool {
	return !slices.Contains(
		[]adapter.Kind{adapter.MemberRemove, adapter.MemberReplace, adapter.InstanceDecommission}, kind,
	)
}

// readLoad reads from the controller what runs; nil when the controller does not answer.
func readLoad(ctx context.Context, call *adapter.PlanCall) (*load, error) {
	controllers := call.Of(layout.ComponentController)
	if len(controllers) == 0 || !controllers[0].Node.IsReachable() {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, planTime)
	defer cancel()
	result, err := call.Try(ctx, controllers[0], "load", planCommand(), adapter.Within(planTime))
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, nil
	case err != nil:
		return nil, err
	case result.State != adapter.TaskSucceeded:
		return nil, nil
	}
	lines, rest, _ := strings.Cut(result.Stdout, "=== jobs\n")
	jobs, total, _ := strings.Cut(rest, "=== total\n")
	return &load{
		members: report.MembersByNode(lines, call.Of(layout.ComponentWorker)), jobs: report.ParseQueue(jobs),
		total: layout.Number(total),
	}, nil
}

// ending returns the plan for the end of the whole cluster. It is safe in that it does what it
// states; the answer names its cost.
func ending(found load, jobs []report.Job, total int) adapter.PlanAnswer {
	answer := adapter.PlanAnswer{Verdict: adapter.VerdictSafe, Message: "no job is in the queue"}
	for _, one := range jobs {
		answer.WorkLost = append(
			answer.WorkLost,
			report.WorkOf([]report.Job{one}, found.members[report.FirstNode(one.NodeList)])...)
	}
	answer.WorkTotal = total
	if total > 0 {
		answer.Message = report.Counted(total, "job") + " would be canceled"
		answer.Reasons = []adapter.PlanReason{{Code: "JOBS_LOST", Message: answer.Message}}
	}
	return answer
}

// leaving returns the plan for taking workers away, or draining them.
func leaving(call *adapter.PlanCall, found load) adapter.PlanAnswer {
	var targets []string
	workers := 0
	for _, member := range call.Targets() {
		targets = append(targets, member.ID)
		if member.ComponentKey == layout.ComponentWorker {
			workers++
		}
	}
	var there []adapter.Work
	for _, one := range found.jobs {
		for _, name := range report.NodeNames(one.NodeList) {
			if id := found.members[name]; slices.Contains(targets, id) {
				there = append(there, report.WorkOf([]report.Job{one}, id)...)
				break
			}
		}
	}
	answer := adapter.PlanAnswer{Verdict: adapter.VerdictSafe, Reversible: reversible(call.Request.Kind)}
	switch {
	case len(there) == 0:
		answer.Message = "no job runs there"
	case call.Request.Force:
		answer.Verdict, answer.WorkLost = adapter.VerdictUnsafe, there
		answer.Message = report.Counted(len(there), "job") + " there would be ended or restarted from the beginning"
		answer.Reasons = []adapter.PlanReason{{Code: "JOBS_LOST", Message: answer.Message}}
	default:
		answer.Message = fmt.Sprintf("it would wait for %s: %s", report.Counted(len(there), "job"), jobIDs(there))
		answer.Reasons = []adapter.PlanReason{{Code: "WAITS_FOR_JOBS", Message: answer.Message}}
	}
	if last := len(call.Of(layout.ComponentWorker)) - workers; call.Request.Kind == adapter.MemberRemove && last < 1 {
		answer.Verdict = adapter.VerdictUnsafe
		answer.Reasons = append(
			answer.Reasons,
			adapter.PlanReason{Code: "LAST_WORKER", Message: "the cluster would have no worker left", Path: "targets"},
		)
	}
	return answer
}

// jobIDs returns the first few ids.
func jobIDs(list []adapter.Work) string {
	var ids []string
	for _, one := range list[:min(len(list), 5)] {
		ids = append(ids, one.ID)
	}
	if len(list) > 5 {
		ids = append(ids, "and others")
	}
	return strings.Join(ids, ", ")
}

// planVersions returns the plan for an upgrade or rollback.
func planVersions(call *adapter.PlanCall, found load) (adapter.PlanAnswer, error) {
	from, to, err := layout.Versions(call.Request.Change)
	if err != nil {
		return adapter.PlanAnswer{}, err
	}
	answer := adapter.PlanAnswer{
		Verdict: adapter.VerdictSafe, Reversible: true,
		Message: "running jobs continue; slurmdbd, slurmctld and then each slurmd restart, " +
			"which delays submissions by some seconds",
	}
	if from.PartitionName != to.PartitionName && found.total > 0 {
		answer.Verdict = adapter.VerdictUnsafe
		answer.Message = fmt.Sprintf(
			"partition %s would be deleted, and %s with it", from.PartitionName, report.Counted(found.total, "job"),
		)
		answer.Reasons = []adapter.PlanReason{
			{Code: "PARTITION_IN_USE", Message: answer.Message, Path: "change.to.config.partitionName"},
		}
		answer.WorkLost, answer.WorkTotal = report.WorkOf(found.jobs, ""), found.total
	}
	if to.CPUsPerNode != from.CPUsPerNode || to.MemoryMiBPerNode != from.MemoryMiBPerNode {
		answer.Reasons = append(answer.Reasons, adapter.PlanReason{
			Code: "WORKER_SIZE_CHANGES", Message: "jobs that wait for more than the new size stay in the queue",
			Path: "change.to.config",
		})
	}
	return answer, nil
}
