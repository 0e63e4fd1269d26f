// Package report reads what Slurm's commands print: jobs, nodes and accounts. It starts none of them;
// beside each parser is the format or script that the parser expects.
package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
)

// Job is one job as the actions answer it. Times are as Slurm writes them, without a zone, until [Zoned] gives them
// one; a time that is not known yet is empty.
type Job struct {
	JobID string `json:"jobId"`
	Name  string `json:"name"`
	User  string `json:"user"`
	// UID is the id of the user; 0 where it was not read.
	UID       int    `json:"-"`
	Partition string `json:"partition"`
	State     string `json:"state"`
	Reason    string `json:"reason"`
	ExitCode  int    `json:"exitCode"`
	Nodes     int    `json:"nodes"`
	NodeList  string `json:"nodeList"`
	Submitted string `json:"submittedAt"`
	Started   string `json:"startedAt"`
	Ended     string `json:"endedAt"`
	Details
}

// OfPerson reports whether the job runs as somebody whom the platform has given an account.
func (j Job) OfPerson() bool { return j.UID >= layout.FirstPerson && j.UID <= layout.LastPerson }

// Is reports whether the job is in this state, in any letter case.
func (j Job) Is(state string) bool { return strings.EqualFold(j.State, state) }

// queueField is a squeue field to read, with its width. squeue pads and cuts each value to its width, so a value can
// hold any character without breaking the line.
type queueField struct {
	name  string
	width int
	set   func(*Job, string)
}

var queueFields = []queueField{
	{"JobID", 12, func(j *Job, s string) { j.JobID = s }},
	{"UserName", 20, func(j *Job, s string) { j.User = s }},
	{"Partition", 41, func(j *Job, s string) { j.Partition = s }},
	{"State", 20, func(j *Job, s string) { j.State = s }},
	{"Reason", 30, func(j *Job, s string) { j.Reason = none(s) }},
	{"exit_code", 12, func(j *Job, s string) { j.ExitCode = exitCode(s) }},
	{"NumNodes", 8, func(j *Job, s string) { j.Nodes = layout.Number(s) }},
	{"NodeList", 60, func(j *Job, s string) { j.NodeList = none(s) }},
	{"SubmitTime", 20, func(j *Job, s string) { j.Submitted = none(s) }},
	{"StartTime", 20, func(j *Job, s string) { j.Started = none(s) }},
	{"EndTime", 20, func(j *Job, s string) { j.Ended = none(s) }},
	{"Name", 64, func(j *Job, s string) { j.Name = s }},
}

// QueueFormat returns the value of squeue's option -O.
func QueueFormat() string { return formatOf(queueFields) }

func formatOf(list []queueField) string {
	var fields []string
	for _, field := range list {
		fields = append(fields, fmt.Sprintf("%s:%d", field.name, field.width))
	}
	return strings.Join(fields, ",")
}

// ParseQueue reads the output of squeue in [QueueFormat].
func ParseQueue(text string) []Job { return parseFields(text, queueFields) }

func parseFields(text string, list []queueField) []Job {
	var jobs []Job
	for _, line := range strings.Split(text, "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		var one Job
		rest := []rune(line)
		for _, field := range list {
			width := min(field.width, len(rest))
			field.set(&one, strings.TrimSpace(string(rest[:width])))
			rest = rest[width:]
		}
		if one.State == "PENDING" {
			one.Started, one.Ended = "", ""
		}
		if one.State == "RUNNING" {
			one.Ended = "" // squeue prints the time limit's end
		}
		jobs = append(jobs, one)
	}
	return jobs
}

// ParseCompleted reads lines of the completion log: KEY=VALUE, separated by blanks. A job's name
// may hold blanks, so it ends only at the next key that the log is known to write after it.
func ParseCompleted(text string) []Job {
	var jobs []Job
	for _, line := range strings.Split(text, "\n") {
		value := completedFields(line)
		if value["JobId"] == "" {
			continue
		}
		user, id, _ := strings.Cut(value["UserId"], "(")
		jobs = append(jobs, Job{
			JobID: value["JobId"], Name: value["Name"], User: user, UID: layout.Number(strings.TrimSuffix(id, ")")),
			Partition: value["Partition"], State: value["JobState"],
			ExitCode: exitCode(value["ExitCode"]), Nodes: layout.Number(value["NodeCnt"]),
			NodeList:  none(value["NodeList"]),
			Submitted: none(value["SubmitTime"]), Started: none(value["StartTime"]), Ended: none(value["EndTime"]),
		})
	}
	return jobs
}

// completedKeys are the keys of the completion log, in the order in which it writes them.
var completedKeys = []string{
	"JobId", "UserId", "GroupId", "Name", "JobState", "Partition", "TimeLimit", "StartTime", "EndTime",
	"NodeList", "NodeCnt", "ProcCnt", "WorkDir", "ReservationName", "Tres", "Account", "QOS", "WcKey", "Cluster",
	"SubmitTime", "EligibleTime", "DerivedExitCode", "ExitCode",
}

// completedFields returns the values of a line by key.
func completedFields(line string) map[string]string {
	values := make(map[string]string)
	rest := " " + line
	for i, key := range completedKeys {
		_, after, found := strings.Cut(rest, " "+key+"=")
		if !found {
			continue
		}
		value := after
		if i+1 < len(completedKeys) {
			if before, _, found := strings.Cut(after, " "+completedKeys[i+1]+"="); found {
				value = before
			}
		}
		values[key] = strings.TrimSpace(value)
		rest = " " + key + "=" + after
	}
	return values
}

// MergeJobs adds to the live jobs those of the log that are not among them. The newest comes first.
func MergeJobs(live, completed []Job) []Job {
	known := make(map[string]bool, len(live))
	for _, one := range live {
		known[one.JobID] = true
	}
	for _, one := range completed {
		if !known[one.JobID] {
			known[one.JobID] = true
			live = append(live, one)
		}
	}
	slices.SortStableFunc(live, func(a, b Job) int {
		return cmp.Compare(layout.Number(b.JobID), layout.Number(a.JobID))
	})
	return live
}

// none returns an empty text for every way in which Slurm writes that a value is missing.
func none(text string) string {
	switch text {
	case "N/A", "None", "(null)", "Unknown", "None assigned":
		return ""
	}
	return text
}

// exitCode reads an exit code: the completion log's "3:0", code and signal, or squeue's wait status
// with the code in the second byte and the signal in the first. A signal becomes 128 and its
// number, as in a shell.
func exitCode(text string) int {
	code, signal := 0, 0
	if before, after, found := strings.Cut(text, ":"); found {
		code, signal = layout.Number(before), layout.Number(after)
	} else if status := layout.Number(text); status > 0 {
		code, signal = status>>8, status&0x7f
	}
	if code == 0 && signal != 0 {
		return 128 + signal
	}
	return code
}
