package calls

import (
	"cmp"
	"context"
	"slices"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/report"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// Leaving chooses the workers that leave a smaller cluster: failed ones first, then those with the fewest jobs, then
// the highest index. When the controller does not answer, the choice is the platform's.
func Leaving(ctx context.Context, call *adapter.PlanCall, count int) ([]adapter.Member, error) {
	found, err := readLoad(ctx, call)
	if err != nil || found == nil {
		return nil, err
	}
	return leastLoaded(call.Targets(), *found, count), nil
}

func leastLoaded(workers []adapter.Member, found load, count int) []adapter.Member {
	jobs := make(map[string]int)
	for _, one := range found.jobs {
		for _, name := range report.NodeNames(one.NodeList) {
			jobs[found.members[name]]++
		}
	}
	serves := func(member adapter.Member) int {
		if member.Status == string(adapter.MemberFailed) {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(workers, func(a, b adapter.Member) int {
		return cmp.Or(cmp.Compare(serves(a), serves(b)), cmp.Compare(jobs[a.ID], jobs[b.ID]),
			cmp.Compare(b.Index, a.Index))
	})
	return workers[:min(count, len(workers))]
}
