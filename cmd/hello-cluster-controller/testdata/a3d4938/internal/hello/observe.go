package hello

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// observe asks every node at once how its peer's process is. A node that does not answer in time
// makes the peer's health unknown, never good.
func observe(ctx context.Context, call *adapter.Call) (adapter.Observation, error) {
	peers := call.Of(component)
	seen := adapter.Observation{Members: make([]adapter.MemberObservation, len(peers))}
	var group errgroup.Group
	group.SetLimit(16)
	for i, peer := range peers {
		group.Go(func() error {
			seen.Members[i] = observeOne(ctx, call, peer)
			return nil
		})
	}
	_ = group.Wait() // no function of the group fails
	seen.Health, seen.Message = whole(seen.Members)
	return seen, ctx.Err()
}

func observeOne(ctx context.Context, call *adapter.Call, peer adapter.Member) adapter.MemberObservation {
	bounded, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	one := adapter.MemberObservation{ID: peer.ID}
	result, err := call.Try(bounded, peer, "inspect", adapter.InspectProcess{Name: process}, adapter.Within(askTime))
	if err != nil {
		one.Health, one.Message = adapter.HealthUnknown, "its node did not answer"
		return one
	}
	one.Health, one.Message = judge(result)
	return one
}

// whole judges the instance by its peers: unknown as long as it may be better or worse than it looks.
func whole(peers []adapter.MemberObservation) (adapter.Health, string) {
	count := map[adapter.Health]int{}
	for _, peer := range peers {
		count[peer.Health]++
	}
	message := fmt.Sprintf("%d of %d peers run", count[adapter.Healthy], len(peers))
	if count[adapter.HealthUnknown] > 0 {
		message += fmt.Sprintf(", %d cannot be asked", count[adapter.HealthUnknown])
	}
	switch {
	case len(peers) > 0 && count[adapter.Healthy] == len(peers):
		return adapter.Healthy, message
	case count[adapter.Healthy] > 0:
		return adapter.Degraded, message
	case count[adapter.HealthUnknown] > 0:
		return adapter.HealthUnknown, message
	}
	return adapter.Unhealthy, message
}
