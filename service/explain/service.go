// Package explain answers who may do what, and why: the rows that give a permission, or the nearest missing one.
package explain

import (
	"time"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
)

// Service explains permissions.
type Service struct{ DB *tx.DB }

// Explanation is whether a subject may do something, and why.
type Explanation struct {
	Allowed             bool
	Subject             authz.Ref
	PermissionKey       string
	Description         string
	TenantID, ProjectID *ids.ID
	Because, Missing    []*Ground
	AskWhom             []*authz.Ref
}

// Ground is a row that gives a permission, or comes nearest to giving it.
type Ground struct {
	Kind, ID, Role, Scope string
	ExpiresAt             *time.Time
	Message               string
}
