package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/pace"
	"github.com/gpuaas/app-platform/sdk/tunnel"
)

// keepTunnel holds the connection over which the platform reaches what runs on this node, and after every break
// connects again.
func (a *Agent) keepTunnel(ctx context.Context) error {
	retry := pace.New(maxBackoff)
	for {
		opened := time.Now()
		err := a.tunnel(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		a.log.WarnContext(ctx, "tunnel will be opened again", "error", err)
		if time.Since(opened) > steadyStream {
			retry.Reset()
		}
		if err := pace.PauseOr(ctx, retry.Step(), a.credentials.renewed); err != nil {
			return err
		}
	}
}

// tunnel connects and serves streams until the connection breaks.
func (a *Agent) tunnel(ctx context.Context) error {
	conn, err := a.client.Tunnel(ctx, a.credentials)
	if err != nil {
		return err
	}
	session, err := tunnel.NewSession(conn, false)
	if err != nil {
		_ = conn.Close()
		return err
	}
	a.log.InfoContext(ctx, "tunnel open")
	return session.Serve(ctx, a.serveStream)
}

// serveStream serves one stream by its kind.
func (a *Agent) serveStream(ctx context.Context, open tunnel.Open, stream *tunnel.Stream) error {
	switch open.Kind {
	case tunnel.KindPort:
		return a.servePort(ctx, open, stream)
	default:
		return &tunnel.Refusal{Code: tunnel.Unserved, Message: fmt.Sprintf("this agent knows no %.40q", open.Kind)}
	}
}

// servePort passes bytes between the stream and a port of a member, which is reached from inside of the member's own
// network.
func (a *Agent) servePort(ctx context.Context, open tunnel.Open, stream *tunnel.Stream) error {
	var wanted tunnel.Port
	if err := json.Unmarshal(open.Spec, &wanted); err != nil || wanted.Port < 1 || wanted.Port > 65_535 {
		return &tunnel.Refusal{Code: tunnel.Invalid, Message: "a port is a number from 1 to 65535"}
	}
	way, err := a.sandboxes.Reach(open.MemberID)
	if err != nil {
		return &tunnel.Refusal{Code: tunnel.NoMember, Message: err.Error()}
	}
	if way.Address == "" { // the port could be anybody's on the node
		return &tunnel.Refusal{Code: tunnel.NoMember, Message: "the member has no network of its own on this node"}
	}
	conn, err := dialPort(ctx, way.Dial, way.Address, wanted.Port)
	if err != nil {
		return &tunnel.Refusal{Code: tunnel.NotListening,
			Message: fmt.Sprintf("nothing in the member answers on port %d", wanted.Port)}
	}
	if err := stream.Granted(); err != nil {
		_ = conn.Close()
		return err
	}
	tunnel.Join(stream.Conn, conn)
	return nil
}

// dialPatience is how long a port may take to be connected to.
const dialPatience = 5 * time.Second

// dialPort connects to the member's own address, or else to its loopback, where many programs listen alone.
func dialPort(ctx context.Context, dial func(context.Context, string, string) (net.Conn, error), address string,
	port int) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialPatience)
	defer cancel()
	var failed error
	for _, host := range []string{address, "127.0.0.1"} {
		conn, err := dial(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if err == nil {
			return conn, nil
		}
		failed = errors.Join(failed, err)
	}
	return nil, failed
}
