package share

import (
	"context"
	"strings"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/service/kit/check"
)

// Withdraw takes an offer back, or detaches the attached project: at once, whatever the project is doing. It requires
// control_plane.offer on the instance's project, and a reason. Faults: NOT_FOUND, FORBIDDEN, INVALID_ARGUMENT at
// reason, FAILED_PRECONDITION at shareId when it has ended.
func (s *Service) Withdraw(ctx context.Context, in Input) (*db.ControlPlaneShare, error) {
	if strings.TrimSpace(in.Reason) == "" {
		wrong := &check.Input{}
		wrong.Bad("reason", "must state why: the other project reads it")
		return nil, wrong.Err()
	}
	return s.carry(ctx, in, move{
		action: "withdrawControlPlane", key: authz.ControlPlaneOffer, by: owner,
		word: "control plane withdrawn from another project",
		to: func(row *db.ControlPlaneShare) lifecycle.ShareStatus {
			if row.Status == lifecycle.ShareOffered || row.Status == lifecycle.ShareWithdrawn {
				return lifecycle.ShareWithdrawn
			}
			return lifecycle.ShareDetached
		},
	})
}
