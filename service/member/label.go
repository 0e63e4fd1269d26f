package member

import (
	"context"
	"encoding/json"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/service/change"
)

// LabelInput is how a member is labelled.
type LabelInput struct {
	Input
	// Labels are the whole new set: an object of at most 32 texts.
	Labels json.RawMessage
}

func (in LabelInput) request() *change.Request {
	request := in.Input.request(lifecycle.MemberLabel, "labelMember")
	request.Labels, request.Asked.Input = in.Labels, in
	return request
}

// Label labels a member; labels that are not named go. It asks for <family>.node.operate. Faults: those
// of change.Engine.Accept; INVALID_ARGUMENT at input.labels.
func (s *Service) Label(ctx context.Context, in LabelInput) (*Changed, error) {
	return s.accept(ctx, in.request(), nil)
}
