// Package endpoint holds the verbs by which people reach what runs: they open an endpoint that a manifest declares, in
// a browser or as a connection, and the platform finds the member that serves it and the process that holds the tunnel
// of its node. This package never sees what passes through.
//
//	browser: openEndpoint ── ticket, seconds ── Redeem at the endpoint's host ── cookie ── Find, again every few seconds
//	program: its own credential ─────────────────────────────────────────────────────────── Find
package endpoint

import (
	"context"
	"net/url"
	"time"

	"github.com/gpuaas/app-platform/authz/sshca"
	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/internal/tx"
)

// Service holds the verbs on endpoints.
type Service struct {
	// DB is the database.
	DB *tx.DB
	// Keys sign what apps learn of their callers.
	Keys *token.Keyring
	// SSH are the authorities that sign certificates of people and of hosts.
	SSH *sshca.Authorities
	// Apps is the address below which endpoints have hosts of their own; nil where browsers open none.
	Apps *url.URL
	// Try asks a member whether it answers at an endpoint; set before use where there are tunnels.
	Try func(context.Context, *Target) error
	// Process names this process among those that hold tunnels, and Address is where the others reach it.
	Process, Address string
}

const (
	// TicketLife is how long a ticket waits to be used.
	TicketLife = 30 * time.Second
	// OpeningLife is how long an endpoint stays open in a browser, at most; it ends with the login before.
	OpeningLife = 12 * time.Hour
)
