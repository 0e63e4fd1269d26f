package member

import (
	"context"

	"github.com/gpuaas/app-platform/domain/lifecycle"
)

// Recover brings a FAILED member in again: its bootstrap is repeated. It requires <family>.member.recover. Faults:
// those of engine.Engine.Accept.
func (s *Service) Recover(ctx context.Context, in Input) (*Changed, error) {
	return s.accept(ctx, in.request(lifecycle.MemberRecover, "recoverMember"))
}
