package operation

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter/api"
	"github.com/gpuaas/app-platform/sdk/adapter/contract"
)

const (
	// teardownTime is how long the node may take to stop and delete one member, and
	// forcedTeardownTime how long it gets when the caller chose force.
	teardownTime       = 5 * time.Minute
	forcedTeardownTime = 30 * time.Second
)

// Teardown deletes the sandboxes of members, several at once, and reports each as removed once its
// node has reported that nothing is left. The nodes' reports are kept as the evidence "residue".
//
// Under force a node that cannot be reached is skipped: its member is reported as removed all the
// same, and the evidence "notTornDown" names the members that may still have something on their
// nodes. The platform records the same, and cleans those nodes when they return.
func (r *Run) Teardown(ctx context.Context, members []contract.Member) error {
	var mu sync.Mutex
	left, passed := make(map[string]int, len(members)), []string{}
	err := r.Each(ctx, members, func(ctx context.Context, member contract.Member) error {
		residue, err := r.teardownOne(ctx, member)
		mu.Lock()
		defer mu.Unlock()
		if r.Force() && IsUnreachable(err) {
			passed = append(passed, member.ID)
			return r.Member(member.ID, contract.MemberRemoved, contract.HealthUnknown,
				map[string]any{"tornDown": false})
		}
		left[member.ID] = len(residue.Processes) + len(residue.Mounts) + residue.Files
		return err
	})
	if err != nil {
		return err
	}
	if len(passed) > 0 {
		slices.Sort(passed)
		if err := r.Evidence("notTornDown", passed); err != nil {
			return err
		}
	}
	return r.Evidence("residue", left)
}

func (r *Run) teardownOne(ctx context.Context, member contract.Member) (contract.Residue, error) {
	within := teardownTime
	if r.Force() {
		within = forcedTeardownTime
	}
	result, err := r.Do(ctx, member, "teardown", contract.Teardown{}, api.Within(within))
	if err != nil {
		return contract.Residue{}, err
	}
	residue, ok := result.Residue()
	if ok && !residue.Empty() {
		return residue, contract.Fail("RESIDUE_LEFT", contract.OwnerNode, true,
			"member %s left %d processes, %d mounts and %d files on its node",
			member.ID, len(residue.Processes), len(residue.Mounts), residue.Files)
	}
	return residue, r.Member(member.ID, contract.MemberRemoved, contract.HealthUnknown, nil)
}
