// Package webhook holds the verbs on outbound webhooks.
package webhook

import (
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/custody"
	"github.com/gpuaas/app-platform/internal/tx"
)

// Service holds the verbs.
type Service struct {
	DB *tx.DB
	// Vault keeps the signing secrets.
	Vault *custody.Vault
}

// Created is a webhook with its secret, for the only time.
type Created struct {
	Webhook *db.Webhook
	Secret  *string
}
