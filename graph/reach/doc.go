// Package reach passes people's connections to the members of instances. An agent of a node dials out and keeps a
// tunnel to one process of the platform; a stream to a member goes over that tunnel, by way of the process that holds
// it.
//
//	person ── this process ─────────────────────────── tunnel ── agent ── member
//	person ── this process ── that of another process ── tunnel ── agent ── member
//
// Who may reach what is for service/endpoint; here are the connections. Bounds: MaxPerTenant streams of a tenant at a
// time, IdleLife without a byte, tunnel.MaxStreams at an agent, tunnel.Window bytes of each in memory.
package reach

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/graph/live"
	"github.com/gpuaas/app-platform/internal/places"
	"github.com/gpuaas/app-platform/sdk/tunnel"
	"github.com/gpuaas/app-platform/service/endpoint"
)

const (
	// MaxPerTenant is how many streams of one tenant pass through a process at a time.
	MaxPerTenant = 1_000
	// IdleLife is how long a stream stays open though nothing passes.
	IdleLife = time.Hour
)

// Relay holds the tunnels of this process and finds those of others. Fields are set before it is used and not changed.
type Relay struct {
	// Endpoints finds what may be reached, and which process holds a node's tunnel. Required.
	Endpoints *endpoint.Service
	// Keys prove this process to its peers. Required.
	Keys *token.Keyring
	// Sentinel rechecks rights while connections are open. Required.
	Sentinel *live.Sentinel
	// Origins are pages besides our own that may open a terminal with the cookie of a login.
	Origins []string
	// Log takes what must not be answered. Required.
	Log *slog.Logger

	mu      sync.Mutex
	nodes   map[ids.ID]*tunnel.Session // tunnels of agents, by node
	peers   map[string]*tunnel.Session // to other processes, by their addresses
	tenants places.Counter[ids.ID]     // streams now open
	tries   map[tryKey]try
	open    atomic.Int64
}

// Streams is how many streams people have open through this process.
func (r *Relay) Streams() int64 { return r.open.Load() }

// take takes a place for a stream of a tenant, which leave gives back; not ok beyond MaxPerTenant.
func (r *Relay) take(tenant ids.ID) (leave func(), ok bool) {
	back, ok := r.tenants.Take(tenant, MaxPerTenant)
	if !ok {
		return nil, false
	}
	r.open.Add(1)
	return sync.OnceFunc(func() { r.open.Add(-1); back() }), true
}
