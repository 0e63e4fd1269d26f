package oci

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// observe asks every node at once how its container is. A node that does not answer in time makes the member's health
// unknown, never good.
func observe(ctx context.Context, call *adapter.Call) (adapter.Observation, error) {
	members := call.Of(component)
	seen := adapter.Observation{Members: make([]adapter.MemberObservation, len(members))}
	var group errgroup.Group
	group.SetLimit(16)
	for i, member := range members {
		group.Go(func() error {
			seen.Members[i] = observeOne(ctx, call, member)
			return nil
		})
	}
	_ = group.Wait() // no function of the group fails
	seen.Health, seen.Message = whole(seen.Members)
	return seen, ctx.Err()
}

func observeOne(ctx context.Context, call *adapter.Call, member adapter.Member) adapter.MemberObservation {
	bounded, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	one := adapter.MemberObservation{ID: member.ID, Health: adapter.HealthUnknown, Message: "its node did not answer"}
	inspected, err := call.Try(bounded, member, "inspect", adapter.InspectProcess{Name: process}, adapter.Within(askTime))
	if err != nil {
		return one
	}
	state, ok := inspected.Process()
	if !ok || inspected.State != adapter.TaskSucceeded {
		return one
	}
	// No detail: the platform keeps what was reported of the member last, and where it listens is told when it is launched.
	if state.State != "running" {
		one.Health, one.Message = adapter.Unhealthy, "its container is "+state.State
		return one
	}
	well, err := call.Try(bounded, member, "ready", verb("ready"), adapter.Within(askTime))
	switch {
	case err != nil || well.State != adapter.TaskSucceeded && well.State != adapter.TaskFailed:
		one.Message = "its container runs, its health check did not end"
	case well.State == adapter.TaskFailed:
		one.Health, one.Message = adapter.Unhealthy, lastLines("its health check fails: "+well.Stderr, 1)
	default:
		one.Health, one.Message = adapter.Healthy, fmt.Sprintf("well, restarted %d times", state.Restarts)
	}
	return one
}

// whole judges the instance by its members: unknown as long as it may be better or worse than it looks.
func whole(members []adapter.MemberObservation) (adapter.Health, string) {
	count := map[adapter.Health]int{}
	for _, member := range members {
		count[member.Health]++
	}
	message := fmt.Sprintf("%d of %d containers are well", count[adapter.Healthy], len(members))
	if count[adapter.HealthUnknown] > 0 {
		message += fmt.Sprintf(", %d cannot be asked", count[adapter.HealthUnknown])
	}
	switch {
	case len(members) > 0 && count[adapter.Healthy] == len(members):
		return adapter.Healthy, message
	case count[adapter.Healthy] > 0:
		return adapter.Degraded, message
	case count[adapter.HealthUnknown] > 0:
		return adapter.HealthUnknown, message
	}
	return adapter.Unhealthy, message
}
