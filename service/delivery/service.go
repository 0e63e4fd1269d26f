// Package delivery brings artifacts to nodes: a node opens the delivery of a task's artifact, and fetches its parts by
// digest from the platform, which reads them from the source with a credential that no node ever sees.
//
//	openArtifactDelivery ── parts, address, token
//	GET address+digest (graph/deliveryhttp) ── Part: token read offline, one query
//	    ── Body: the source, with the credential from custody ── streamed, one buffer of it in memory
package delivery

import (
	"log/slog"
	"time"

	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/custody"
	"github.com/gpuaas/app-platform/internal/fetch"
	"github.com/gpuaas/app-platform/internal/tx"
)

// Service holds the verb that opens a delivery, and the reads that serve its parts. Fields are set before it is used
// and not changed.
type Service struct {
	DB *tx.DB
	// Vault keeps the sources' credentials.
	Vault *custody.Vault
	// Keys sign and verify the tokens of deliveries.
	Keys *token.Keyring
	// Reach is how sources are reached.
	Reach fetch.Reach
	// URL is the address that parts are fetched below, as nodes reach it, with a trailing slash.
	URL string
	// Log takes what must not be answered; nil for none.
	Log *slog.Logger

	underWay  underWay
	manifests semaphore // in memory
	opened    credentials
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
