// Package apphttp serves the HTTP endpoints of instances to people, each on an origin of its own, so that no app can
// read the console's cookies or call the API as its user.
//
//	browser ── GET /.platform/open?ticket ── cookie of this host alone ── 303 to /
//	browser ── cookie ──┐
//	program ── bearer ──┴─ grant: who, which member ── stream by graph/reach ── the app
//
// An app gets each request without any credential of the platform, and with CallerHeader, by which it knows who calls.
// What an app answers is hostile: its cookies stay at its own host, and its headers are bounded. A grant is rechecked
// every few seconds while it is used, and takes its open requests along when it ends.
package apphttp

import (
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/graph/live"
	"github.com/gpuaas/app-platform/graph/reach"
	"github.com/gpuaas/app-platform/service/endpoint"
)

const (
	// CallerHeader names the caller to the app: a token signed by the platform, for this instance alone, that the app
	// verifies by the keys which the platform publishes at /.well-known/jwks.json.
	CallerHeader = "X-App-Platform-Caller"
	// maxHeaders bounds the headers of an app's answer, in bytes.
	maxHeaders = 64 << 10
	// grantLife is how long an unused grant is remembered.
	grantLife = time.Minute
	// maxGrants bounds the grants that are remembered.
	maxGrants = 10_000
	// idleConnections and idleConnectionLife bound the connections that stay open to a member between two requests.
	idleConnections    = 32
	idleConnectionLife = time.Minute
)

// Options are what a handler needs; all but Log are required.
type Options struct {
	Endpoints *endpoint.Service
	Relay     *reach.Relay
	Keys      *token.Keyring
	Sentinel  *live.Sentinel
	// Authenticate reads a program's credential, as for the API.
	Authenticate reach.Authenticate
	// Console is the platform's own address: where people open endpoints, and where no app may send them by a redirect.
	Console *url.URL
	Log     *slog.Logger
}

// Handler serves the hosts of endpoints, and leaves every other host to next.
type Handler struct {
	Options
	next   http.Handler
	proxy  *httputil.ReverseProxy
	grants grants
}

// New returns a handler.
func New(options Options, next http.Handler) *Handler {
	h := &Handler{Options: options, next: next, grants: grants{known: make(map[key]*grant)}}
	h.proxy = h.newProxy()
	return h
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, instance, ours, ok := h.Endpoints.ParseHost(r.Host)
	switch {
	case !ours:
		h.next.ServeHTTP(w, r)
	case !ok:
		h.page(w, http.StatusNotFound, "There is no such app", "No endpoint of an app has this address.", "")
	case r.URL.Path == endpoint.RedeemPath:
		h.redeem(w, r)
	default:
		h.serve(w, r, name, instance)
	}
}
