package calls

import (
	"context"
	"encoding/json"

	"golang.org/x/sync/errgroup"

	"github.com/gpuaas/app-platform/cmd/rke2-self-managed-controller/internal/machine"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// maxBrought is how many nodes get an image at the same time.
const maxBrought = 8

// bringImage brings an image of the tenant's onto every node that serves, under a name that pods call it by. An action
// is short: a large image that takes longer goes on when the call is repeated with its key. Nodes that cannot be
// reached, and those that come later, do not have it. A node that fails ends none of the others, and of several
// failures the first member's is returned, so that a repeat returns the same.
func bringImage(ctx context.Context, call *adapter.Call) (any, error) {
	var input struct{ Digest, Name string }
	if err := json.Unmarshal(call.Input, &input); err != nil {
		return nil, err
	}
	members := append(call.Of(machine.Server), call.Of(machine.Agent)...)
	failures := make([]error, len(members))
	has, without := []string{}, []string{}
	var group errgroup.Group
	group.SetLimit(maxBrought)
	for i, member := range members {
		if !serves(member) {
			without = append(without, machine.Name(member))
			continue
		}
		has = append(has, machine.Name(member))
		group.Go(func() error {
			failures[i] = bringTo(ctx, call, member, input.Digest, input.Name)
			return nil
		})
	}
	_ = group.Wait() // none returns an error
	for _, err := range failures {
		if err != nil {
			return nil, err
		}
	}
	return map[string]any{"image": input.Name, "nodes": has, "without": without}, nil
}

// bringTo fetches an image onto a member's node and gives it to the node's containerd under a name.
func bringTo(ctx context.Context, call *adapter.Call, member adapter.Member, digest, name string) error {
	if _, err := call.Do(ctx, member, "fetch", machine.FetchImage(digest),
		adapter.Within(machine.JoinTime)); err != nil {
		return err
	}
	_, err := call.Do(ctx, member, "import", machine.ImportImage(digest, name), adapter.Within(machine.SaveTime))
	return err
}

// serves reports whether a member runs RKE2 on a node that can be reached.
func serves(member adapter.Member) bool {
	switch adapter.MemberStatus(member.Status) {
	case adapter.MemberActive, adapter.MemberDraining, adapter.MemberDrained:
		return member.Node.IsReachable()
	}
	return false
}
