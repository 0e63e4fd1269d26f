package slurm

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// job is one job as the actions answer it. Times are as Slurm writes them, in the node's time zone;
// empty when there is none yet.
type job struct {
	JobID     string `json:"jobId"`
	Name      string `json:"name"`
	User      string `json:"user"`
	Partition string `json:"partition"`
	State     string `json:"state"`
	Reason    string `json:"reason"`
	ExitCode  int    `json:"exitCode"`
	Nodes     int    `json:"nodes"`
	NodeList  string `json:"nodeList"`
	Submitted string `json:"submittedAt"`
	Started   string `json:"startedAt"`
	Ended     string `json:"endedAt"`
}

// queueFields are the squeue fields read, with their widths. squeue pads and cuts each to its
// width, so a value can hold any character without breaking the line.
var queueFields = []struct {
	name  string
	width int
	set   func(*job, string)
}{
	{"JobID", 12, func(j *job, s string) { j.JobID = s }},
	{"UserName", 20, func(j *job, s string) { j.User = s }},
	{"Partition", 41, func(j *job, s string) { j.Partition = s }},
	{"State", 20, func(j *job, s string) { j.State = s }},
	{"Reason", 30, func(j *job, s string) { j.Reason = none(s) }},
	{"exit_code", 12, func(j *job, s string) { j.ExitCode = exitCode(s) }},
	{"NumNodes", 8, func(j *job, s string) { j.Nodes = number(s) }},
	{"NodeList", 60, func(j *job, s string) { j.NodeList = none(s) }},
	{"SubmitTime", 20, func(j *job, s string) { j.Submitted = none(s) }},
	{"StartTime", 20, func(j *job, s string) { j.Started = none(s) }},
	{"EndTime", 20, func(j *job, s string) { j.Ended = none(s) }},
	{"Name", 64, func(j *job, s string) { j.Name = s }},
}

// squeueFormat is the value of squeue's option -O.
func squeueFormat() string {
	var fields []string
	for _, field := range queueFields {
		fields = append(fields, fmt.Sprintf("%s:%d", field.name, field.width))
	}
	return strings.Join(fields, ",")
}

// parseQueue reads what squeue printed with squeueFormat.
func parseQueue(text string) []job {
	var jobs []job
	for _, line := range strings.Split(text, "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		var one job
		rest := []rune(line)
		for _, field := range queueFields {
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

// parseCompleted reads lines of the completion log: KEY=VALUE, separated by blanks. A name may hold
// blanks, so it ends only at the next key that the log is known to write after it.
func parseCompleted(text string) []job {
	var jobs []job
	for _, line := range strings.Split(text, "\n") {
		value := completedFields(line)
		if value["JobId"] == "" {
			continue
		}
		user, _, _ := strings.Cut(value["UserId"], "(")
		jobs = append(jobs, job{
			JobID: value["JobId"], Name: value["Name"], User: user, Partition: value["Partition"], State: value["JobState"],
			ExitCode: exitCode(value["ExitCode"]), Nodes: number(value["NodeCnt"]), NodeList: none(value["NodeList"]),
			Submitted: none(value["SubmitTime"]), Started: none(value["StartTime"]), Ended: none(value["EndTime"]),
		})
	}
	return jobs
}

// completedKeys are the keys read of the completion log, in the order in which it writes them.
var completedKeys = []string{
	"JobId", "UserId", "GroupId", "Name", "JobState", "Partition", "TimeLimit", "StartTime", "EndTime", "NodeList", "NodeCnt",
	"ProcCnt", "WorkDir", "ReservationName", "Tres", "Account", "QOS", "WcKey", "Cluster", "SubmitTime", "EligibleTime", "DerivedExitCode", "ExitCode",
}

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

// mergeJobs adds to the live jobs those of the log that are not among them, newest first.
func mergeJobs(live, completed []job) []job {
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
	slices.SortStableFunc(live, func(a, b job) int { return cmp.Compare(number(b.JobID), number(a.JobID)) })
	return live
}

// firstNode is the first name of a node list such as "w[0-2,5]" or "w3,w7".
func firstNode(list string) string {
	prefix, rest, bracket := strings.Cut(list, "[")
	if !bracket || strings.Contains(prefix, ",") {
		name, _, _ := strings.Cut(list, ",")
		return name
	}
	if end := strings.IndexAny(rest, "-,]"); end >= 0 {
		rest = rest[:end]
	}
	return prefix + rest
}

// nodeNames are all names of a node list such as "w[0-2,5]" or "w3,w7".
func nodeNames(list string) (names []string) {
	for list != "" {
		prefix, rest, bracket := strings.Cut(list, "[")
		if name, after, comma := strings.Cut(list, ","); comma && !(bracket && len(name) > len(prefix)) {
			names, list = append(names, name), after
			continue
		}
		if !bracket {
			return append(names, list)
		}
		inside, after, _ := strings.Cut(rest, "]")
		for _, part := range strings.Split(inside, ",") {
			first, last, span := strings.Cut(part, "-")
			if !span {
				last = first
			}
			for i := number(first); i <= min(number(last), portBlock); i++ {
				names = append(names, prefix+strconv.Itoa(i))
			}
		}
		list = strings.TrimPrefix(after, ",")
	}
	return names
}

// counted is a number with its noun, such as "1 job" and "2 jobs".
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// none turns Slurm's words for nothing into nothing.
func none(text string) string {
	switch text {
	case "N/A", "None", "(null)", "Unknown", "None assigned":
		return ""
	}
	return text
}

func number(text string) int {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		return 0
	}
	return n
}

// exitCode reads the completion log's "3:0", code and signal, or squeue's wait status, the code in
// the second byte and the signal in the first. A signal counts as a shell would say it.
func exitCode(text string) int {
	code, signal := 0, 0
	if before, after, found := strings.Cut(text, ":"); found {
		code, signal = number(before), number(after)
	} else if status := number(text); status > 0 {
		code, signal = status>>8, status&0x7f
	}
	if code == 0 && signal != 0 {
		return 128 + signal
	}
	return code
}

func contains(list []string, word string) bool {
	return slices.ContainsFunc(list, func(one string) bool { return strings.EqualFold(one, word) })
}
