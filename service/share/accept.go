package share

import (
	"context"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/policy"
	"github.com/gpuaas/app-platform/ent/generated/db"
)

// Accept attaches the project that a control plane is offered to. From the commit on its people and service accounts
// may ask the app for what their keys in their own project allow. It requires control_plane.attach on that project.
//
// Faults: NOT_FOUND, FORBIDDEN, POLICY_DENIED when the project's policy does not allow the app, its version, mode or
// scope, FAILED_PRECONDITION at shareId when it is not an open offer or the instance does not run.
func (s *Service) Accept(ctx context.Context, in Input) (*db.ControlPlaneShare, error) {
	return s.carry(ctx, in, move{
		action: "acceptControlPlane", key: authz.ControlPlaneAttach, by: other,
		word:    "control plane accepted by another project",
		to:      func(*db.ControlPlaneShare) lifecycle.ShareStatus { return lifecycle.ShareAttached },
		policed: true, rule: attachable,
	})
}

// attachable checks that the control plane runs, and that the policy of the project to be attached allows it.
func attachable(_ *db.ControlPlaneShare, instance *db.Instance, left *policy.Effective) error {
	if err := live(instance, "shareId"); err != nil {
		return err
	}
	return policy.Join(
		left.App(instance.AppSlug, "shareId"),
		left.Version(instance.AppSlug, instance.AppVersion, "shareId"),
		left.Mode(lifecycle.OperatingMode(instance.OperatingMode),
			lifecycle.ControlPlaneScope(instance.ControlPlaneScope), "shareId"),
	)
}
