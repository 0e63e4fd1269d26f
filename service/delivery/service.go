// Package delivery brings artifacts to nodes: a node opens the delivery of a task's artifact, and fetches its parts by
// digest from the platform, which asks the source with a credential that no node ever sees.
package delivery

import (
	"time"

	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/custody"
	"github.com/gpuaas/app-platform/internal/tx"
)

// Service holds the verb, and answers the requests for parts.
type Service struct {
	DB *tx.DB
	// Vault keeps the sources' credentials.
	Vault *custody.Vault
	// Keys sign and verify the tokens of deliveries.
	Keys *token.Keyring
	// URL is the address that parts are fetched below, as nodes reach it, with a trailing slash.
	URL string
}

// Delivery is what a node needs to fetch an artifact.
type Delivery struct {
	TaskID    ids.ID
	Digest    string
	Kind      lifecycle.ArtifactKind
	MediaType string
	Parts     []*db.ArtifactPart
	URL       string
	Token     string
	ExpiresAt time.Time
}
