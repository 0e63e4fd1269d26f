// Package calls answers what is read from a cluster at once: the app's actions, observations and plans.
package calls

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/daemons"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/report"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

const (
	// jobCompLog is the file in which slurmctld records jobs that have ended.
	jobCompLog = "/var/log/slurm/jobcomp.log"
	// callTime bounds one Slurm command of an action.
	callTime = 30 * time.Second
)

// Actions returns what the adapter does for each action of the app, by name.
func Actions() map[string]adapter.ActionFunc {
	return map[string]adapter.ActionFunc{
		"queue.submit": submit, "queue.list": list, "queue.cancel": cancel,
		"node.list": listNodes, "accounting.jobs": accountingJobs,
	}
}

// submission is the input of queue.submit.
type submission struct {
	Script       string `json:"script"`
	Name         string `json:"name"`
	Partition    string `json:"partition"`
	Nodes        int    `json:"nodes"`
	Tasks        int    `json:"tasks"`
	CPUsPerTask  int    `json:"cpusPerTask"`
	LimitMinutes int    `json:"limitMinutes"`
	GPUs         int    `json:"gpus"`
}

// command returns the sbatch call. Every value is an argument of its own and comes after a "=", so
// that nothing a caller wrote can become an option or a command.
func (s submission) command() []string {
	command := []string{
		"sbatch", "--parsable", "--chdir=" + layout.JobDir, "--output=" + outputPath("%j"), "--open-mode=append",
	}
	options := []struct {
		name  string
		value string
		set   bool
	}{
		{"job-name", s.Name, s.Name != ""},
		{"partition", s.Partition, s.Partition != ""},
		{"nodes", strconv.Itoa(s.Nodes), s.Nodes > 0},
		{"ntasks", strconv.Itoa(s.Tasks), s.Tasks > 0},
		{"cpus-per-task", strconv.Itoa(s.CPUsPerTask), s.CPUsPerTask > 0},
		{"gres", "gpu:" + strconv.Itoa(s.GPUs), s.GPUs > 0},
		{"time", strconv.Itoa(s.LimitMinutes), s.LimitMinutes > 0},
	}
	for _, option := range options {
		if option.set {
			command = append(command, "--"+option.name+"="+option.value)
		}
	}
	return command
}

func outputPath(job string) string { return path.Join(layout.JobDir, job+".out") }

// submit queues a job script and returns the job's id.
func submit(ctx context.Context, call *adapter.Call) (any, error) {
	var input submission
	if err := json.Unmarshal(call.Input, &input); err != nil {
		return nil, fmt.Errorf("read input: %w", err)
	}
	if !strings.HasPrefix(input.Script, "#!") {
		return nil, adapter.Reject("SCRIPT_INVALID", "input.script", "the script must begin with a line like #!/bin/sh")
	}
	result, err := onController(
		ctx,
		call,
		"submit",
		adapter.RunCommand{Command: input.command(), Stdin: input.Script, User: layout.JobUser, WorkDir: layout.JobDir},
	)
	if err != nil {
		return nil, err
	}
	if result.State != adapter.TaskSucceeded {
		return nil, adapter.Reject("SUBMIT_REFUSED", "input", "%s", complaint(result))
	}
	id, _, _ := strings.Cut(strings.TrimSpace(result.Stdout), ";")
	if _, err := strconv.ParseUint(id, 10, 32); err != nil {
		return nil, fmt.Errorf("sbatch answered %q", result.Stdout)
	}
	return map[string]any{"jobId": id}, nil
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
	if len(jobs) == 0 {
		return nil, adapter.Reject("JOB_NOT_FOUND", "input.jobId", "there is no job %s", input.JobID)
	}
	text, err := readOutput(ctx, call, members, jobs[0], input.OutputBytes)
	if err != nil {
		return nil, err
	}
	output["output"] = text
	return output, nil
}

// readJobs returns the jobs, and the members by node.
func readJobs(ctx context.Context, call *adapter.Call, id string) ([]report.Job, map[string]string, error) {
	result, err := onController(ctx, call, "list", listCommand(id))
	if err != nil {
		return nil, nil, err
	}
	if result.State != adapter.TaskSucceeded {
		return nil, nil, unavailable(result)
	}
	live, rest, _ := strings.Cut(result.Stdout, "=== completed\n")
	completed, record, _ := strings.Cut(rest, "=== record\n")
	return report.MergeJobs(
		report.ParseQueue(live),
		report.ParseCompleted(completed),
	), report.MembersByNode(record, call.Of(layout.ComponentWorker)), nil
}

// filter returns the jobs that the input selects, at most as many as it allows.
func (l listing) filter(jobs []report.Job) []report.Job {
	kept := []report.Job{}
	for _, one := range jobs {
		if l.JobID != "" && one.JobID != l.JobID {
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

// readOutput returns the end of a submitted job's output from the worker that ran its batch step. A
// job that has not begun, or was not submitted by queue.submit, has none.
func readOutput(
	ctx context.Context, call *adapter.Call, members map[string]string, one report.Job, limit int,
) (string, error) {
	worker, ok := batchWorker(call, members, one.NodeList)
	if !ok || limit == 0 {
		return "", nil
	}
	result, err := call.Do(ctx, worker, "output", outputCommand(one.JobID, strconv.Itoa(limit)), adapter.Within(callTime))
	if err != nil {
		return "", err
	}
	return strings.ToValidUTF8(result.Stdout, "?"), nil
}

// batchWorker returns the worker that ran the batch step: the first of the job's nodes. A worker
// that has left the cluster took its output along.
func batchWorker(call *adapter.Call, members map[string]string, nodeList string) (adapter.Member, bool) {
	id := members[report.FirstNode(nodeList)]
	for _, member := range call.Of(layout.ComponentWorker) {
		if id != "" && member.ID == id {
			return member, true
		}
	}
	return adapter.Member{}, false
}

// cancel cancels a job. A job that has ended is not an error: the answer states that it was not canceled.
func cancel(ctx context.Context, call *adapter.Call) (any, error) {
	var input struct{ JobID string }
	if err := json.Unmarshal(call.Input, &input); err != nil {
		return nil, fmt.Errorf("read input: %w", err)
	}
	result, err := onController(
		ctx, call, "cancel", adapter.RunCommand{Command: []string{"scancel", "--verbose", input.JobID}},
	)
	if err != nil {
		return nil, err
	}
	said := result.Stderr + result.Stdout
	switch {
	case strings.Contains(said, "Invalid job id"):
		return nil, adapter.Reject("JOB_NOT_FOUND", "input.jobId", "there is no job %s", input.JobID)
	case strings.Contains(said, "already completing or completed"):
		return map[string]any{"jobId": input.JobID, "canceled": false}, nil
	case result.State != adapter.TaskSucceeded:
		return nil, unavailable(result)
	}
	return map[string]any{"jobId": input.JobID, "canceled": true}, nil
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
