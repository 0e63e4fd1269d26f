package slurm

import (
	"context"
	"strconv"
	"strings"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// sacctFields are what accounting.jobs reads, in order; the name comes last because only it may hold a
// bar.
const sacctFields = "JobID,User,Account,Partition,State,ExitCode,AllocNodes,AllocCPUS,NodeList,Submit,Start,End,ElapsedRaw,CPUTimeRAW,JobName"

// accountScript prints the accounts of jobs since $1 days ago, newest last; 3 says that accounting is off.
const accountScript = `grep -q accounting_storage/slurmdbd ` + slurmConfPath + ` || exit 3
export TZ=UTC
timeout 20 sacct -a -X -n -P -S "now-$1days" -o ` + sacctFields + ` | tail -n "$2"`

// accounted is one job as slurmdbd has it.
type accounted struct {
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
}

func accountingJobs(ctx context.Context, call *adapter.Call) (any, error) {
	input := struct{ Days, Limit int }{Days: 7, Limit: 100}
	if err := decodeOptional(call.Input, &input); err != nil {
		return nil, err
	}
	task := adapter.RunCommand{Command: []string{"sh", "-c", accountScript, "account", strconv.Itoa(input.Days), strconv.Itoa(input.Limit)}}
	result, err := onController(ctx, call, "account", task)
	if err != nil {
		return nil, err
	}
	if result.ExitCode != nil && *result.ExitCode == 3 {
		return nil, adapter.Reject("ACCOUNTING_OFF", "instance.config.accounting", "this cluster does not account for its jobs")
	}
	if result.State != adapter.TaskSucceeded {
		return nil, unavailable(result)
	}
	return map[string]any{"jobs": parseAccounts(result.Stdout)}, nil
}

// parseAccounts reads what sacct printed, newest first.
func parseAccounts(text string) []accounted {
	list := []accounted{}
	for _, line := range strings.Split(text, "\n") {
		part := strings.SplitN(line, "|", 15)
		if len(part) != 15 {
			continue
		}
		state, _, _ := strings.Cut(part[4], " ") // "CANCELLED by 0"
		one := accounted{
			JobID: part[0], User: part[1], Account: part[2], Partition: part[3], State: state, ExitCode: exitCode(part[5]),
			Nodes: number(part[6]), CPUs: number(part[7]), NodeList: none(part[8]), Submitted: none(part[9]), Started: none(part[10]),
			Ended: none(part[11]), Seconds: number(part[12]), CPUSeconds: number(part[13]), Name: part[14],
		}
		list = append([]accounted{one}, list...)
	}
	return list
}
