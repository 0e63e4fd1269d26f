package share

import (
	"context"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
)

// Detach leaves a shared control plane: from the commit on the project does not see its instance. It requires
// control_plane.detach on the attached project. Faults: NOT_FOUND, FORBIDDEN, FAILED_PRECONDITION at shareId when it
// is not attached.
func (s *Service) Detach(ctx context.Context, in Input) (*db.ControlPlaneShare, error) {
	return s.carry(ctx, in, move{
		action: "detachControlPlane", key: authz.ControlPlaneDetach, by: other,
		word: "another project left the control plane",
		to:   func(*db.ControlPlaneShare) lifecycle.ShareStatus { return lifecycle.ShareDetached },
	})
}
