package member

import (
	"context"
	"encoding/json"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/service/change"
)

// LabelInput names a member and its labels.
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

// Label replaces the labels of a member. It requires <family>.node.operate. Faults: those of engine.Engine.Accept;
// INVALID_ARGUMENT at input.labels.
func (s *Service) Label(ctx context.Context, in LabelInput) (*Changed, error) {
	return s.accept(ctx, in.request())
}
