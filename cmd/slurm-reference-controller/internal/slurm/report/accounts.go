package report

import (
	"strings"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
)

// AccountFields are the sacct fields that [ParseAccounts] reads, in order. The name comes last
// because only a name may hold a bar.
const AccountFields = "JobID,User,Account,Partition,State,ExitCode,AllocNodes,AllocCPUS,NodeList," +
	"Submit,Start,End,ElapsedRaw,CPUTimeRAW,JobName"

// AccountedJob is one job as slurmdbd recorded it.
type AccountedJob struct {
	JobID      string `json:"jobId"`
	Name       string `json:"name"`
	User       string `json:"user"`
	Account    string `json:"account"`
	Partition  string `json:"partition"`
	State      string `json:"state"`
	ExitCode   int    `json:"exitCode"`
	Nodes      int    `json:"nodes"`
	CPUs       int    `json:"cpus"`
	NodeList   string `json:"nodeList"`
	Submitted  string `json:"submittedAt"`
	Started    string `json:"startedAt"`
	Ended      string `json:"endedAt"`
	Seconds    int    `json:"seconds"`
	CPUSeconds int    `json:"cpuSeconds"`
	// GPUs is how many it had; nil for an instance of a version before 1.4.
	GPUs *int `json:"gpus,omitempty"`
}

// DetailedAccountFields are the sacct fields that [ParseDetailedAccounts] reads: GPUs come first.
const DetailedAccountFields = "AllocTRES," + AccountFields

// ParseDetailedAccounts reads the output of sacct, run with TZ=UTC, and returns its jobs, newest first.
func ParseDetailedAccounts(text string) []AccountedJob {
	list := []AccountedJob{}
	for _, line := range strings.Split(text, "\n") {
		tres, rest, _ := strings.Cut(line, "|")
		for _, one := range ParseAccounts(rest) {
			one.GPUs = gpusOf(tres)
			for _, at := range []*string{&one.Submitted, &one.Started, &one.Ended} {
				*at = Zoned(*at, "+0000")
			}
			list = append([]AccountedJob{one}, list...)
		}
	}
	return list
}

// ParseAccounts reads the output of sacct and returns its jobs, newest first.
func ParseAccounts(text string) []AccountedJob {
	list := []AccountedJob{}
	for _, line := range strings.Split(text, "\n") {
		part := strings.SplitN(line, "|", 15)
		if len(part) != 15 {
			continue
		}
		state, _, _ := strings.Cut(part[4], " ") // "CANCELLED by 0"
		one := AccountedJob{
			JobID: part[0], User: part[1], Account: part[2], Partition: part[3], State: state,
			ExitCode: exitCode(part[5]),
			Nodes: layout.Number(
				part[6],
			), CPUs: layout.Number(part[7]), NodeList: none(part[8]), Submitted: none(part[9]), Started: none(part[10]),
			Ended: none(part[11]), Seconds: layout.Number(part[12]), CPUSeconds: layout.Number(part[13]),
			Name: part[14],
		}
		list = append([]AccountedJob{one}, list...)
	}
	return list
}
