// Package share holds the verbs on shared control planes: offer, consent, withdrawal, detachment.
package share

import (
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/manifest"
	"github.com/gpuaas/app-platform/internal/tx"
)

// Service holds the verbs.
type Service struct{ DB *tx.DB }

// ControlPlane is what an attached project sees of a shared control plane.
type ControlPlane struct {
	InstanceID                                  ids.ID
	Name, AppSlug, AppVersion, PermissionFamily string
	Status                                      lifecycle.InstanceStatus
	Health                                      lifecycle.Health
	Actions                                     []manifest.Action
}
