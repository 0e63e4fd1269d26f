package report

import (
	"slices"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
)

// Details are what jobs report since version 1.4; all of it is empty for an instance of an earlier one.
type Details struct {
	// ArrayID is the task of an array, "4_0", or those that still wait, "4_[1-3]".
	ArrayID string `json:"arrayId,omitempty"`
	// Owner is the requester at the platform; empty for a job from within the cluster.
	Owner string `json:"owner,omitempty"`
	// GPUs is how many it has on all its nodes, or requests.
	GPUs *int `json:"gpus,omitempty"`
	// Dependency is what it waits for, as Slurm writes it.
	Dependency string `json:"dependency,omitempty"`
	// Steps are those of one job, as accounting has them.
	Steps []Step `json:"steps,omitempty"`
}

// Step is a step of a job: its batch script, or an srun in it.
type Step struct {
	// StepID is its number in the job, or "batch".
	StepID   string `json:"stepId"`
	Name     string `json:"name"`
	State    string `json:"state"`
	ExitCode int    `json:"exitCode"`
	NodeList string `json:"nodeList"`
	GPUs     int    `json:"gpus"`
	Started  string `json:"startedAt"`
	Ended    string `json:"endedAt"`
}

// ownerMark begins the comment of a job that was submitted by the platform.
const ownerMark = "platform:"

// OwnerComment is the comment of a job that is submitted by the platform. It names the requester; within the cluster a
// comment can be changed, so it proves nothing.
func OwnerComment(requester string) string { return ownerMark + requester }

func ownerOf(comment string) string {
	owner, found := strings.CutPrefix(comment, ownerMark)
	if !found {
		return ""
	}
	return owner
}

// detailFields are the squeue fields with details. The name stays last; eighty lines fit in a node's output beside
// those of the log.
var detailFields = slices.Insert(slices.Clone(queueFields), len(queueFields)-1,
	queueField{"JobArrayID", 30, func(j *Job, s string) {
		if strings.Contains(s, "_") {
			j.ArrayID = s
		}
	}},
	queueField{"Comment", 50, func(j *Job, s string) { j.Owner = ownerOf(s) }},
	queueField{"tres-alloc", 70, func(j *Job, s string) { j.GPUs = gpusOf(s) }},
	queueField{"tres-per-node", 25, func(j *Job, s string) { j.ask(s, max(j.Nodes, 1)) }},
	queueField{"tres-per-job", 25, func(j *Job, s string) { j.ask(s, 1) }},
	queueField{"Dependency", 60, func(j *Job, s string) { j.Dependency = none(s) }},
)

// peopleFields add whose a job is; the name's field is as wide as the longest name that the platform gives.
var peopleFields = append([]queueField{
	{"UserID", 12, func(j *Job, s string) { j.UID = layout.Number(s) }},
	{"UserName", 32, func(j *Job, s string) { j.User = s }},
}, slices.DeleteFunc(slices.Clone(detailFields), func(f queueField) bool { return f.name == "UserName" })...)

// PeopleFormat returns the value of squeue's option -O for [ParsePeople].
func PeopleFormat() string { return formatOf(peopleFields) }

// ParsePeople reads the output of squeue in [PeopleFormat].
func ParsePeople(text string) []Job { return parseFields(text, peopleFields) }

// DetailFormat returns the value of squeue's option -O for [ParseDetailed].
func DetailFormat() string { return formatOf(detailFields) }

// ParseDetailed reads the output of squeue in [DetailFormat].
func ParseDetailed(text string) []Job { return parseFields(text, detailFields) }

// gpusOf reads the number of GPUs in a list of trackable resources.
func gpusOf(tres string) *int {
	count := 0
	for _, one := range strings.Split(tres, ",") {
		if value, found := strings.CutPrefix(one, "gres/gpu="); found {
			count = layout.Number(value)
		}
	}
	return &count
}

// ask adds what a job requests, such as "gres:gpu:2", so many times. It counts only where Slurm has not counted what
// the job was given: without accounting it does not.
func (j *Job) ask(text string, times int) {
	rest, found := strings.CutPrefix(text, "gres:gpu")
	if !found || *j.GPUs > 0 {
		return
	}
	count := 1 // "gres:gpu" alone
	if at := strings.LastIndex(rest, ":"); at >= 0 {
		count = layout.Number(rest[at+1:])
	}
	total := count * times
	j.GPUs = &total
}

// StepFields are the sacct fields that [ParseSteps] reads, in order.
const StepFields = "JobID,State,ExitCode,NodeList,AllocTRES,Start,End,JobName"

// ParseSteps reads the output of sacct for one job: the lines whose ids have a dot are its steps.
func ParseSteps(text string) (steps []Step) {
	for _, line := range strings.Split(text, "\n") {
		part := strings.SplitN(line, "|", 8)
		_, id, isStep := strings.Cut(part[0], ".")
		if len(part) != 8 || !isStep {
			continue
		}
		state, _, _ := strings.Cut(part[1], " ") // "CANCELLED by 0"
		steps = append(steps, Step{
			StepID: id, State: state, ExitCode: exitCode(part[2]), NodeList: none(part[3]), GPUs: *gpusOf(part[4]),
			Started: Zoned(none(part[5]), "+0000"), Ended: Zoned(none(part[6]), "+0000"), Name: part[7],
		})
	}
	return steps
}

// ParseCompletedIn reads lines of the completion log, whose times are in the node's zone: an offset as date +%z
// writes it.
func ParseCompletedIn(text, zone string) []Job {
	jobs := ParseCompleted(text)
	for i := range jobs {
		jobs[i].zone(zone)
	}
	return jobs
}

// InUTC gives the times of jobs their zone, where Slurm's command ran with TZ=UTC.
func InUTC(jobs []Job) []Job {
	for i := range jobs {
		jobs[i].zone("+0000")
	}
	return jobs
}

func (j *Job) zone(offset string) {
	for _, at := range []*string{&j.Submitted, &j.Started, &j.Ended} {
		*at = Zoned(*at, offset)
	}
}

// Zoned returns a time of Slurm's as RFC 3339 has it, in UTC; what does not parse as a time stays as it is.
func Zoned(text, offset string) string {
	at, err := time.Parse("2006-01-02T15:04:05-0700", text+strings.TrimSpace(offset))
	if err != nil {
		return text
	}
	return at.UTC().Format(time.RFC3339)
}

// ended are the states that do not change any more by themselves.
var ended = []string{
	"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "BOOT_FAIL", "DEADLINE",
	"REVOKED",
}

// HasEnded reports whether the job has ended.
func (j Job) HasEnded() bool { return slices.ContainsFunc(ended, j.Is) }

// Of reports whether the job has this id, or is a task of the array with it.
func (j Job) Of(id string) bool { return j.JobID == id || strings.HasPrefix(j.ArrayID, id+"_") }
