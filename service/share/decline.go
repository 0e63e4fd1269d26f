package share

import (
	"context"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
)

// Decline declines an offer. It requires control_plane.attach on the project that received it. Faults: NOT_FOUND,
// FORBIDDEN, FAILED_PRECONDITION at shareId when it is not an open offer.
func (s *Service) Decline(ctx context.Context, in Input) (*db.ControlPlaneShare, error) {
	return s.carry(ctx, in, move{
		action: "declineControlPlane", key: authz.ControlPlaneAttach, by: other,
		word: "control plane declined by another project",
		to:   func(*db.ControlPlaneShare) lifecycle.ShareStatus { return lifecycle.ShareDeclined },
	})
}
