package calls

import (
	"context"
	"strconv"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/report"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// accountScript prints these fields of the accounts of jobs of the last $1 days, newest last. It exits with 3 when
// accounting is off.
func accountScript(fields string) string {
	return `grep -q accounting_storage/slurmdbd ` + layout.SlurmConfPath + ` || exit 3
export TZ=UTC
timeout 20 sacct -a -X -n -P -S "now-$1days" -o ` + fields + ` | tail -n "$2"`
}

// accountingJobs returns the accounts of jobs of the last days, newest first.
func accountingJobs(ctx context.Context, call *adapter.Call) (any, error) {
	input := struct{ Days, Limit int }{Days: 7, Limit: 100}
	if err := decodeOptional(call.Input, &input); err != nil {
		return nil, err
	}
	result, err := onController(ctx, call, "account", accountCommand(detailOf(call), strconv.Itoa(input.Days),
		strconv.Itoa(input.Limit)))
	if err != nil {
		return nil, err
	}
	if result.ExitCode != nil && *result.ExitCode == 3 {
		return nil, adapter.Reject(
			"ACCOUNTING_OFF", "instance.config.accounting", "accounting is off in this cluster: turn it on",
		)
	}
	if result.State != adapter.TaskSucceeded {
		return nil, unavailable(result)
	}
	if detailOf(call) >= detailed {
		return map[string]any{"jobs": report.ParseDetailedAccounts(result.Stdout)}, nil
	}
	return map[string]any{"jobs": report.ParseAccounts(result.Stdout)}, nil
}
