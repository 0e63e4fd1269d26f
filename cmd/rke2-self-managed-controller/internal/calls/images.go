package calls

import (
	"context"
	"encoding/json"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/gpuaas/app-platform/cmd/rke2-self-managed-controller/internal/machine"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// maxBrought is how many nodes get an image at the same time.
const maxBrought = 8

// bringImage brings an image of the tenant's onto every node that serves, under a name that pods call it by. An action
// is short: what a large image takes longer goes on when it is asked again with its key. Nodes that cannot be
// reached, and those that come later, do not have it.
func bringImage(ctx context.Context, call *adapter.Call) (any, error) {
	var input struct{ Digest, Name string }
	if err := json.Unmarshal(call.Input, &input); err != nil {
		return nil, err
	}
	var mu sync.Mutex
	has, without := []string{}, []string{}
	group, bounded := errgroup.WithContext(ctx)
	group.SetLimit(maxBrought)
	for _, member := range append(call.Of(machine.Server), call.Of(machine.Agent)...) {
		if !serves(member) {
			mu.Lock()
			without = append(without, machine.Name(member))
			mu.Unlock()
			continue
		}
		group.Go(func() error {
			if _, err := call.Do(bounded, member, "fetch", machine.FetchImage(input.Digest),
				adapter.Within(machine.JoinTime)); err != nil {
				return err
			}
			_, err := call.Do(bounded, member, "import", machine.ImportImage(input.Digest, input.Name),
				adapter.Within(machine.SaveTime))
			mu.Lock()
			defer mu.Unlock()
			has = append(has, machine.Name(member))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return map[string]any{"image": input.Name, "nodes": has, "without": without}, nil
}

// serves reports whether a member runs RKE2 on a node that can be reached.
func serves(member adapter.Member) bool {
	switch adapter.MemberStatus(member.Status) {
	case adapter.MemberActive, adapter.MemberDraining, adapter.MemberDrained:
		return member.Node.IsReachable()
	}
	return false
}
