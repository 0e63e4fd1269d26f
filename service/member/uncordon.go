package member

import (
	"context"

	"github.com/gpuaas/app-platform/domain/lifecycle"
)

// Uncordon lets a cordoned or drained member take work again. It requires <family>.node.operate. Faults: those of
// engine.Engine.Accept; FAILED_PRECONDITION when it takes work already.
func (s *Service) Uncordon(ctx context.Context, in Input) (*Changed, error) {
	return s.accept(ctx, in.request(lifecycle.MemberUncordon, "uncordonMember"))
}
