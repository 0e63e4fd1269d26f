// Package calls answers what is read from a cluster at once: the app's actions, observations and plans.
package calls

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/daemons"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/login"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/people"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/report"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

const (
	// jobCompLog is the file in which slurmctld records jobs that have ended.
	jobCompLog = "/var/log/slurm/jobcomp.log"
	// callTime bounds one Slurm command of an action.
	callTime = 30 * time.Second
)

// Actions returns what the adapter does for each action of the app, by name. The desk lets people in, and the
// keeper keeps logins certified.
func Actions(desk *people.Desk, keeper *login.Keeper) map[string]adapter.ActionFunc {
	actions := map[string]adapter.ActionFunc{
		"queue.submit": submit(desk), "queue.list": list, "node.list": listNodes, "accounting.jobs": accountingJobs,
		"ssh.account": account(desk, keeper),
		"job.output":  readPart(owner), "job.output" + ofAny: readPart(operator),
		"queue.cancel": cancel(owner), "queue.cancel" + ofAny: cancel(operator),
	}
	for _, name := range []string{"hold", "release", "requeue"} {
		actions["queue."+name], actions["queue."+name+ofAny] = verb(name, owner), verb(name, operator)
	}
	return actions
}

// listing is the input of queue.list.
type listing struct {
	JobID       string   `json:"jobId"`
	States      []string `json:"states"`
	Limit       int      `json:"limit"`
	OutputBytes int      `json:"outputBytes"`
}

// listScript prints the queue with ended jobs, newest first, then from the completion log those
// that slurmctld has forgotten. $2 is one job's number, or empty for all. A node keeps 64 KiB of
// output: the numbers of lines are chosen to fit.
const listScript = `if test -n "$2"; then squeue -a -h -t all -j "$2" -O "$1" 2> /dev/null; ` +
	`else squeue -a -h -t all -S -i -O "$1" | head -n 100; fi
echo "=== completed"
test ! -f ` + jobCompLog + ` || if test -n "$2"; then grep "^JobId=$2 " ` + jobCompLog + `; ` +
	`else tail -n 40 ` + jobCompLog + `; fi
echo "=== record"
` + report.RecordScript + `
` + daemons.SlurmctldUp

// detailScript is listScript with details: times in UTC, the zone of the log's times, and the steps of one job.
const detailScript = `zone=$(date +%z)
export TZ=UTC
if test -n "$2"; then squeue -a -h -t all -j "$2" -O "$1" 2> /dev/null | head -n 80; ` +
	`else squeue -a -h -t all -S -i -O "$1" | head -n 80; fi
echo "=== steps"
if test -n "$2" && grep -q accounting_storage/slurmdbd ` + layout.SlurmConfPath + `; then ` +
	`timeout 10 sacct -n -P -j "$2" -o ` + report.StepFields + ` | head -n 40; fi
echo "=== completed $zone"
test ! -f ` + jobCompLog + ` || if test -n "$2"; then grep "^JobId=$2 " ` + jobCompLog + `; ` +
	`else tail -n 25 ` + jobCompLog + `; fi
echo "=== record"
` + report.RecordScript + `
` + daemons.SlurmctldUp

// list returns jobs of the queue and of the completion log; for one job also the end of its output.
func list(ctx context.Context, call *adapter.Call) (any, error) {
	input := listing{Limit: 50, OutputBytes: 4096}
	if err := decodeOptional(call.Input, &input); err != nil {
		return nil, err
	}
	jobs, members, err := readJobs(ctx, call, input.JobID)
	if err != nil {
		return nil, err
	}
	jobs = input.filter(jobs)
	output := map[string]any{"jobs": jobs}
	if input.JobID == "" {
		return output, nil
	}
	job, err := theJob(jobs, input.JobID)
	if err != nil {
		return nil, err
	}
	who, err := people.Of(call)
	if err != nil {
		return nil, err
	}
	if who != nil && job.UID != who.UID { // what others' jobs write is not for everybody who sees the queue
		return output, nil
	}
	output["output"], err = readOutput(ctx, call, members, job, input.OutputBytes)
	return output, err
}

// readJobs returns the jobs, and the members by node. A job that is read by its id comes with its steps.
func readJobs(ctx context.Context, call *adapter.Call, id string) ([]report.Job, map[string]string, error) {
	result, err := onController(ctx, call, "list", listCommand(detailOf(call), id))
	if err != nil {
		return nil, nil, err
	}
	if result.State != adapter.TaskSucceeded {
		return nil, nil, unavailable(result)
	}
	live, rest, _ := strings.Cut(result.Stdout, "=== completed")
	zone, rest, _ := strings.Cut(rest, "\n")
	completed, record, _ := strings.Cut(rest, "=== record\n")
	members := report.MembersByNode(record, call.Of(layout.ComponentWorker))
	told := detailOf(call)
	if told == plain {
		return report.MergeJobs(report.ParseQueue(live), report.ParseCompleted(completed)), members, nil
	}
	live, steps, _ := strings.Cut(live, "=== steps\n")
	parse := report.ParseDetailed
	if told >= peopled {
		parse = report.ParsePeople
	}
	jobs := report.MergeJobs(report.InUTC(parse(live)), report.ParseCompletedIn(completed, zone))
	if len(jobs) == 1 {
		jobs[0].Steps = report.ParseSteps(steps)
	}
	return jobs, members, nil
}

// filter returns the jobs that the input selects, at most as many as it allows.
func (l listing) filter(jobs []report.Job) []report.Job {
	kept := []report.Job{}
	for _, one := range jobs {
		if l.JobID != "" && !one.Of(l.JobID) {
			continue
		}
		if len(l.States) > 0 && !slices.ContainsFunc(l.States, one.Is) {
			continue
		}
		if len(kept) < l.Limit {
			kept = append(kept, one)
		}
	}
	return kept
}

// onController runs a command on the controller member.
func onController(
	ctx context.Context, call *adapter.Call, step string, task adapter.RunCommand,
) (adapter.TaskResult, error) {
	controllers := call.Of(layout.ComponentController)
	if len(controllers) == 0 {
		return adapter.TaskResult{}, adapter.Reject("NO_CONTROLLER", "members", "the cluster has no controller")
	}
	return call.Try(ctx, controllers[0], step, task, adapter.Within(callTime))
}

// unavailable returns the error of a command that failed although the input was right.
func unavailable(result adapter.TaskResult) error {
	return adapter.ErrorBody{
		Code: adapter.CodeUnavailable, Message: "slurm did not answer: " + complaint(result), Retryable: true,
	}
}

// complaint returns the error text of a Slurm command, without the command's name and level.
func complaint(result adapter.TaskResult) string {
	var kept []string
	for _, line := range strings.Split(strings.TrimSpace(result.Stderr), "\n") {
		if _, text, found := strings.Cut(line, "error: "); found {
			line = text
		}
		if line = strings.TrimSpace(line); line != "" && len(kept) < 5 {
			kept = append(kept, line)
		}
	}
	if len(kept) == 0 {
		return result.Message
	}
	return strings.Join(kept, "; ")
}

func decodeOptional(raw json.RawMessage, out any) error {
	if len(raw) == 0 {
		return nil
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return fmt.Errorf("read input: %w", err)
	}
	return nil
}
