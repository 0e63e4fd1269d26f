package hello

import (
	"context"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adapter/controller"
)

// observe asks every node at once how its peer's process is. A node that does not answer in time makes the peer's
// health unknown, never good.
func observe(ctx context.Context, call *adapter.Call) (adapter.Observation, error) {
	one := func(ctx context.Context, peer adapter.Member) adapter.MemberObservation {
		return observeOne(ctx, call, peer)
	}
	return controller.Observe(ctx, call.Of(component), "peers run", one)
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
	if ended(result) {
		one.Status = adapter.MemberFailed
	}
	return one
}

// ended reports whether a peer's process has ended and nothing on its node starts it again: an operator stopped it, or
// it exited by itself with success. The node's agent starts one that fails again, until it gives up and reports that.
func ended(result adapter.TaskResult) bool {
	state, ok := result.Process()
	return ok && result.State == adapter.TaskSucceeded && (state.State == "absent" || state.State == "exited")
}
