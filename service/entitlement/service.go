// Package entitlement holds the verbs on a project's right to launch an app: grant, revoke, and reading it.
package entitlement

import "github.com/gpuaas/app-platform/internal/tx"

// Service holds the verbs on entitlements.
type Service struct {
	DB *tx.DB
}
