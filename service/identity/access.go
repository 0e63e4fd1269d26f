package identity

import (
	"time"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
)

// SessionView is a login, without its secret.
type SessionView struct {
	ID, UserID            ids.ID
	Method, Origin, Agent string
	CreatedAt, ExpiresAt  time.Time
	Current               bool
}

// AccountLimits are what a service account is bound to beyond its keys; nil parts bind nothing.
type AccountLimits struct {
	ObjectIds         []ids.ID
	MaxRisk           *lifecycle.ActionRisk
	OperationsPerHour *int
}

// RoleView is a role with its keys.
type RoleView struct {
	Name, Description      string
	Scopes, PermissionKeys []string
}

// PermissionKeyView is a key of the catalogue.
type PermissionKeyView struct{ Name, Description, Family string }
