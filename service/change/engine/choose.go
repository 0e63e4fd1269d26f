package engine

import (
	"context"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/change"
)

// chosen returns a request for fewer members with whom the app's adapter would have leave, where it chooses: an adapter
// that gives no answer leaves the choice to the platform. Other requests are returned as they are. The members are
// chosen again among those that may leave when the request is decided.
func (e *Engine) chosen(ctx context.Context, request *change.Request, action string) (*change.Request, error) {
	if request.Scale == nil || e.Calls == nil {
		return request, nil
	}
	judged, by, err := e.look(ctx, request, action)
	if err != nil {
		return nil, err
	}
	may := judged.Choosable()
	if len(may) == 0 {
		return request, nil
	}
	call, err := question(judged, by, false)
	if err != nil {
		return nil, err
	}
	call.Targets = may
	call.Choose = &adapter.Choose{ComponentKey: judged.ComponentKey, Count: judged.Count}
	answer, err := e.Calls.Plan(ctx, *call)
	if err != nil {
		return nil, err
	}
	out, scale := *request, *request.Scale
	for _, id := range answer.Chosen[:min(len(answer.Chosen), len(may))] {
		scale.Preferred = append(scale.Preferred, ids.ID(id))
	}
	out.Scale = &scale
	return &out, nil
}
