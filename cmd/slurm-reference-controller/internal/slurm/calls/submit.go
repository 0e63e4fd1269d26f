package calls

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/people"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/report"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

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
	Array        string `json:"array"`
	Dependency   string `json:"dependency"`
	Held         bool   `json:"held"`
	// SeparateErrors keeps standard error apart from the output.
	SeparateErrors bool `json:"separateErrors"`
}

// command returns the sbatch call. Every value is an argument of its own and comes after a "=", so that nothing a
// caller wrote can become an option or a command. The requester is noted in the job's comment. The job is who's, in
// their home and charged to their project; without who it runs as the user nobody.
func (s submission) command(instance, requester string, who *people.Person) []string {
	dir, file, charged := layout.JobDir, path.Join(layout.JobDir, "%j"), ""
	if who != nil {
		dir, file, charged = who.Home(), path.Join(who.Home(), people.OutputName(instance, "%j")), who.Account
	}
	command := []string{
		"sbatch", "--parsable", "--chdir=" + dir, "--output=" + file + outputSuffix, "--open-mode=append",
	}
	options := []struct {
		name  string
		value string
		set   bool
	}{
		{"comment", report.OwnerComment(requester), requester != ""},
		{"account", charged, charged != ""},
		{"error", file + errorsSuffix, s.SeparateErrors},
		{"array", s.Array, s.Array != ""},
		{"dependency", s.Dependency, s.Dependency != ""},
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
	if s.Held {
		command = append(command, "--hold")
	}
	if who != nil {
		return who.As(command...)
	}
	return command
}

// The ends of the names of files that jobs write.
const (
	outputSuffix = ".out"
	errorsSuffix = ".err"
)

func outputPath(job string) string { return path.Join(layout.JobDir, job+outputSuffix) }

// submit returns the action that queues a job script and answers the job's id. Who submits it is let in first.
func submit(desk *people.Desk) adapter.ActionFunc {
	return func(ctx context.Context, call *adapter.Call) (any, error) {
		var input submission
		if err := json.Unmarshal(call.Input, &input); err != nil {
			return nil, fmt.Errorf("read input: %w", err)
		}
		if !strings.HasPrefix(input.Script, "#!") {
			return nil, adapter.Reject("SCRIPT_INVALID", "input.script",
				"the script must begin with a line like #!/bin/sh")
		}
		who, err := desk.Admit(ctx, call)
		if err != nil {
			return nil, err
		}
		task := adapter.RunCommand{Command: input.command(call.Instance.ID, call.Requester.ID, who),
			Stdin: input.Script}
		if who == nil {
			task.User, task.WorkDir = layout.JobUser, layout.JobDir
		}
		result, err := onController(ctx, call, "submit", task)
		if err != nil {
			return nil, err
		}
		return submitted(result)
	}
}

// submitted reads the job's id from what sbatch has printed.
func submitted(result adapter.TaskResult) (any, error) {
	if result.State != adapter.TaskSucceeded {
		return nil, adapter.Reject("SUBMIT_REFUSED", "input", "%s", complaint(result))
	}
	id, _, _ := strings.Cut(strings.TrimSpace(result.Stdout), ";")
	if _, err := strconv.ParseUint(id, 10, 32); err != nil {
		return nil, fmt.Errorf("sbatch printed %q, not the number of a job", result.Stdout)
	}
	return map[string]any{"jobId": id}, nil
}
