// Package streams serves what the platform opens over the agent's tunnel: each stream is a port of a member, its logs,
// the series of what it uses, a command in it, a login, or a request about the files of a volume.
package streams

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/files"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/sandbox"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/sshd"
	"github.com/gpuaas/app-platform/sdk/nodelogs"
	"github.com/gpuaas/app-platform/sdk/nodemetrics"
	"github.com/gpuaas/app-platform/sdk/tunnel"
	"github.com/gpuaas/app-platform/sdk/volumefiles"
)

// Members finds the way to a member.
type Members interface {
	Reach(memberID string) (sandbox.Way, error)
	Lookup(ctx context.Context, memberID string) (*sandbox.Client, error)
}

// Server serves streams.
type Server struct {
	Members Members
	// Logs is what members print.
	Logs nodelogs.Source
	// Metrics is what members use.
	Metrics nodemetrics.Source
	// SSH logs people in to members.
	SSH *sshd.Server
	// Files serves the files of the node's volumes; nil where it keeps none.
	Files *files.Server
}

// Serve serves one stream by its kind.
func (s *Server) Serve(ctx context.Context, open tunnel.Open, stream *tunnel.Stream) error {
	switch open.Kind {
	case tunnel.KindPort:
		return s.port(ctx, open, stream)
	case nodelogs.Kind:
		if err := stream.Granted(); err != nil {
			return err
		}
		return nodelogs.Serve(ctx, stream, open.MemberID, s.Logs)
	case nodemetrics.Kind:
		if err := stream.Granted(); err != nil {
			return err
		}
		return nodemetrics.Serve(stream, open.MemberID, s.Metrics)
	case tunnel.KindExec:
		return s.exec(ctx, open, stream)
	case tunnel.KindSSH:
		return s.SSH.Serve(ctx, open, stream)
	case volumefiles.Kind:
		if s.Files == nil {
			return &tunnel.Refusal{Code: tunnel.NoMember, Message: "the node was started without storage"}
		}
		return s.Files.Serve(ctx, open, stream)
	default:
		return &tunnel.Refusal{Code: tunnel.Unserved, Message: fmt.Sprintf("this agent does not know %.40q", open.Kind)}
	}
}

// port passes bytes between the stream and a port of a member, which is reached from inside of the member's own
// network.
func (s *Server) port(ctx context.Context, open tunnel.Open, stream *tunnel.Stream) error {
	var wanted tunnel.Port
	if err := json.Unmarshal(open.Spec, &wanted); err != nil || wanted.Port < 1 || wanted.Port > 65_535 {
		return &tunnel.Refusal{Code: tunnel.Invalid, Message: "a port is a number from 1 to 65535"}
	}
	way, err := s.Members.Reach(open.MemberID)
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
