package oci

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adapter/controller"
)

// observe asks every node at once how its container is. A node that does not answer in time makes the member's health
// unknown, never good.
func observe(ctx context.Context, call *adapter.Call) (adapter.Observation, error) {
	one := func(ctx context.Context, member adapter.Member) adapter.MemberObservation {
		return observeOne(ctx, call, member)
	}
	return controller.Observe(ctx, call.Of(component), "containers are healthy", one)
}

func observeOne(ctx context.Context, call *adapter.Call, member adapter.Member) adapter.MemberObservation {
	bounded, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	one := adapter.MemberObservation{ID: member.ID, Health: adapter.HealthUnknown, Message: "its node did not answer"}
	inspected, err := call.Try(bounded, member, "inspect", adapter.InspectProcess{Name: process},
		adapter.Within(askTime))
	if err != nil {
		return one
	}
	state, ok := inspected.Process()
	if !ok || inspected.State != adapter.TaskSucceeded {
		return one
	}
	// No detail: the platform keeps the member's last reported one, and the launch reports where it listens.
	if state.State != "running" {
		one.Health, one.Message = adapter.Unhealthy, "its container is "+state.State
		return one
	}
	well, err := call.Try(bounded, member, "ready", verb("ready"), adapter.Within(askTime))
	switch {
	case err != nil || well.State != adapter.TaskSucceeded && well.State != adapter.TaskFailed:
		one.Message = "its container runs; its health check did not finish"
	case well.State == adapter.TaskFailed:
		one.Health, one.Message = adapter.Unhealthy, lastLines("its health check fails: "+well.Stderr, 1)
	default:
		one.Health, one.Message = adapter.Healthy, fmt.Sprintf("healthy, restarted %d times", state.Restarts)
	}
	return one
}
