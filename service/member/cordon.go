package member

import (
	"context"

	"github.com/gpuaas/app-platform/domain/lifecycle"
)

// Cordon lets a member take no new work; what runs goes on. It asks for <family>.node.operate. Faults:
// those of engine.Engine.Accept; FAILED_PRECONDITION when it is cordoned already.
func (s *Service) Cordon(ctx context.Context, in Input) (*Changed, error) {
	return s.accept(ctx, in.request(lifecycle.MemberCordon, "cordonMember"))
}
