// Package source holds the verbs on artifact sources: where artifacts may come from, by what credential, and whose
// signatures count there.
package source

import (
	"github.com/gpuaas/app-platform/internal/custody"
	"github.com/gpuaas/app-platform/internal/tx"
)

// Service holds the verbs.
type Service struct {
	DB *tx.DB
	// Vault keeps the credentials.
	Vault *custody.Vault
}
