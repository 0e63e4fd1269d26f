package calls

import (
	"context"
	"strings"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/report"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// listNodes returns the workers as Slurm reports them, with their members.
func listNodes(ctx context.Context, call *adapter.Call) (any, error) {
	result, err := onController(ctx, call, "nodes", nodesCommand(detailOf(call)))
	if err != nil {
		return nil, err
	}
	if result.State != adapter.TaskSucceeded {
		return nil, unavailable(result)
	}
	lines, nodes, _ := strings.Cut(result.Stdout, "=== nodes\n")
	found := report.ParseNodes(nodes, report.MembersByNode(lines, call.Of(layout.ComponentWorker)))
	if _, gpus, told := strings.Cut(lines, "=== gpus\n"); told {
		report.CountGPUs(found, gpus)
	}
	return map[string]any{"nodes": found}, nil
}
