package reach

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/sdk/tunnel"
	"github.com/gpuaas/app-platform/service/endpoint"
)

// Dial connects to the port of an endpoint at the member that serves it. Faults: NODE_UNREACHABLE while the node's
// agent is not connected, UNAVAILABLE while nothing listens there, RATE_LIMITED beyond MaxPerTenant.
func (r *Relay) Dial(ctx context.Context, to *endpoint.Target) (net.Conn, error) {
	spec, err := json.Marshal(tunnel.Port{Port: to.Endpoint.Port})
	if err != nil {
		return nil, err
	}
	return r.Open(ctx, to.Instance.TenantID, to.NodeID,
		tunnel.Open{Kind: tunnel.KindPort, MemberID: string(to.MemberID), Spec: spec})
}

// Open opens a stream to the agent of a node, on a tenant's account. The faults are those of Dial.
func (r *Relay) Open(ctx context.Context, tenant, node ids.ID, open tunnel.Open) (net.Conn, error) {
	leave, ok := r.take(tenant)
	if !ok {
		return nil, fault.New(fault.RateLimited,
			"the tenant has %d connections open here, and may have no more: close some", MaxPerTenant)
	}
	conn, err := r.stream(ctx, node)
	if err == nil {
		if err = tunnel.Begin(ctx, conn, open); err != nil {
			_ = conn.Close()
		}
	}
	if err != nil {
		leave()
		return nil, refusal(err)
	}
	return &counted{Conn: conn, leave: leave}, nil
}

// refusal is the fault of an agent's refusal.
func refusal(err error) error {
	var refused *tunnel.Refusal
	if !errors.As(err, &refused) {
		return err
	}
	switch refused.Code {
	case tunnel.NoMember:
		return fault.New(fault.Unavailable, "the member cannot be reached: %s", refused.Message)
	case tunnel.Unserved:
		return fault.New(fault.FailedPrecondition, "the node's agent is too old for this: %s", refused.Message)
	default:
		return fault.New(fault.Unavailable, "%s", refused.Message)
	}
}

// stream opens a stream to the agent of a node, on which nothing has been requested yet.
func (r *Relay) stream(ctx context.Context, node ids.ID) (net.Conn, error) {
	if held := r.held(node); held != nil {
		if conn, err := held.Through(); err == nil {
			return conn, nil
		}
	}
	process, address, err := r.Endpoints.Holder(ctx, node)
	if err != nil {
		return nil, err
	}
	if process == r.Endpoints.Process { // it has just gone
		return nil, endpoint.Away()
	}
	peer, err := r.peer(ctx, address)
	if err != nil {
		r.Log.WarnContext(ctx, "another process of the platform cannot be reached", "address", address, "error", err)
		return nil, endpoint.Away()
	}
	spec, err := json.Marshal(tunnel.Node{NodeID: string(node)})
	if err != nil {
		return nil, err
	}
	conn, err := peer.Open(ctx, tunnel.Open{Kind: tunnel.KindNode, Spec: spec})
	var refused *tunnel.Refusal
	if errors.As(err, &refused) {
		return nil, endpoint.Away()
	}
	return conn, err
}

// held returns the tunnel of a node that this process holds; nil for none.
func (r *Relay) held(node ids.ID) *tunnel.Session {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.nodes[node]
}

// peer returns the connection to another process, which all streams to its nodes share.
func (r *Relay) peer(ctx context.Context, address string) (*tunnel.Session, error) {
	r.mu.Lock()
	known := r.peers[address]
	r.mu.Unlock()
	if known != nil && !ended(known) {
		return known, nil
	}
	if address == "" {
		return nil, errors.New("it has no address for other processes: set --peer-url")
	}
	text, err := r.Keys.SignPeer(r.Endpoints.Process, time.Now())
	if err != nil {
		return nil, err
	}
	conn, err := tunnel.Dial(ctx, strings.TrimSuffix(address, "/")+tunnel.PeerPath, text, nil)
	if err != nil {
		return nil, err
	}
	fresh, err := tunnel.NewSession(conn, true)
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("connect to %s: %w", address, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.peers[address]; known != nil && !ended(known) { // somebody was faster
		_ = fresh.Close()
		return known, nil
	}
	if r.peers == nil {
		r.peers = make(map[string]*tunnel.Session)
	}
	r.peers[address] = fresh
	return fresh, nil
}

// ended reports whether a connection has ended.
func ended(session *tunnel.Session) bool {
	select {
	case <-session.Done():
		return true
	default:
		return false
	}
}

// counted gives its place back when it is closed, and is closed when nothing passes for IdleLife.
type counted struct {
	net.Conn
	leave   func()
	renewed atomic.Int64 // unix seconds
	closed  atomic.Bool
}

// Read reads nothing once the stream is closed. A member whose caller was cut off ends its answer, and that end would
// make what was cut look whole.
func (c *counted) Read(p []byte) (int, error) {
	c.renew()
	n, err := c.Conn.Read(p)
	if c.closed.Load() {
		return 0, net.ErrClosed
	}
	return n, err
}

func (c *counted) Write(p []byte) (int, error) {
	c.renew()
	return c.Conn.Write(p)
}

// renew puts the end of an idle connection off, at most once a minute.
func (c *counted) renew() {
	now := time.Now()
	if last := c.renewed.Load(); now.Unix()-last >= 60 && c.renewed.CompareAndSwap(last, now.Unix()) {
		_ = c.SetDeadline(now.Add(IdleLife))
	}
}

// CloseWrite ends the writing alone: the stream stays readable.
func (c *counted) CloseWrite() error { return c.Conn.Close() }

// Close ends both ways at once.
func (c *counted) Close() error {
	c.closed.Store(true) // before the member can learn of it
	c.leave()
	_ = c.SetDeadline(time.Unix(1, 0))
	return c.Conn.Close()
}
