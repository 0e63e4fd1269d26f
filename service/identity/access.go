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

// AccountChange is what an update makes of a service account.
type AccountChange struct {
	PermissionKeys []string
	Limits         *AccountLimits
	// Widens and Narrows name what lets it do more, and less, than before.
	Widens, Narrows []string
}

// RoleView is a role with its keys.
type RoleView struct {
	Name, Description      string
	Scopes, PermissionKeys []string
}

// PermissionKeyView is a key of the catalogue.
type PermissionKeyView struct{ Name, Description, Family string }
