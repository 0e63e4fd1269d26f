package member

import (
	"context"

	"github.com/gpuaas/app-platform/domain/lifecycle"
)

// Cordon keeps new work from a member; running work continues. It requires <family>.node.operate. Faults: those of
// engine.Engine.Accept; FAILED_PRECONDITION when it is cordoned already.
func (s *Service) Cordon(ctx context.Context, in Input) (*Changed, error) {
	return s.accept(ctx, in.request(lifecycle.MemberCordon, "cordonMember"))
}
