// Package impact reads the blast radius of an operation on an instance: the projects that its control plane serves.
package impact

import (
	"time"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
)

// Impact is who and what an operation on an instance would touch.
type Impact struct {
	InstanceID        ids.ID
	ControlPlaneScope lifecycle.ControlPlaneScope
	// Projects are those it serves, its own first, at most 100.
	Projects       []*Project
	AttachedTotal  int
	MembersTotal   int
	OpenOperations int
}

// Project is one that a change of a control plane would touch.
type Project struct {
	ProjectID     ids.ID
	DisplayName   string
	AttachedAt    *time.Time
	Subjects      int
	RecentActions int
}
