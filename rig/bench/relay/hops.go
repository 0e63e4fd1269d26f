package relay

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"

	"github.com/gpuaas/app-platform/rig/bench/process"
	"github.com/gpuaas/app-platform/sdk/tunnel"
)

// The children of this subject.
const (
	// SourceRole is the app at the end of every way.
	SourceRole process.Role = "relay-source"
	// AgentRole is the node's agent: it has the platform's tunnel, and connects to the source.
	AgentRole process.Role = "relay-agent"
	// HopRole is a hand-written relay.
	HopRole process.Role = "relay-hop"
)

// chunk is what the source writes at once, and what a hand-written hop copies at once: io.Copy's own size.
const chunk = 32 << 10

// address is the answer to "address".
func address(listener net.Listener) process.Commands {
	return process.WithMeasures(process.Commands{
		"address": func(json.RawMessage) (any, error) { return listener.Addr().String(), nil },
	})
}

// listen serves each connection on a free port of loopback.
func listen(config *tls.Config, serve func(net.Conn)) (net.Listener, error) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	if config != nil {
		listener = tls.NewListener(listener, config)
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				if !errors.Is(err, net.ErrClosed) {
					fmt.Fprintln(os.Stderr, "relay:", err)
				}
				return
			}
			go serve(conn)
		}
	}()
	return listener, nil
}

// Source is the app: a connection says in its first line how many bytes it wants, or "echo".
func Source(context.Context, json.RawMessage) (process.Commands, func(), error) {
	listener, err := listen(nil, func(conn net.Conn) {
		defer func() { _ = conn.Close() }()
		in := bufio.NewReader(conn)
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		var left int64
		if _, err := fmt.Sscan(strings.TrimSpace(line), &left); err != nil {
			_, _ = io.Copy(plain{conn}, in)
			return
		}
		block := make([]byte, chunk)
		for ; left > 0; left -= chunk {
			if _, err := conn.Write(block[:min(left, chunk)]); err != nil {
				return
			}
		}
	})
	if err != nil {
		return nil, nil, err
	}
	return address(listener), func() { _ = listener.Close() }, nil
}

// plain hides what a connection can do besides reading and writing, so that the kernel passes no bytes by itself.
type plain struct{ io.ReadWriter }

// way is where a child connects to, and the files of the one certificate.
type way struct {
	// To is an address, of a source in plain TCP, of a hop over TLS.
	To string
	// TLS says whether To speaks TLS.
	TLS bool
	// Certificate and Key are files.
	Certificate, Key string
	// Token is what an agent shows.
	Token string
}

// client returns the configuration for a connection to the certificate's holder.
func (w *way) client() (*tls.Config, error) {
	authority, err := os.ReadFile(w.Certificate)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, nil
}

// Hop is one hand-written relay: a connection over TLS is copied to one of its own and back.
func Hop(_ context.Context, raw json.RawMessage) (process.Commands, func(), error) {
	var to way
	if err := json.Unmarshal(raw, &to); err != nil {
		return nil, nil, err
	}
	client, err := to.client()
	if err != nil {
		return nil, nil, err
	}
	pair, err := tls.LoadX509KeyPair(to.Certificate, to.Key)
	if err != nil {
		return nil, nil, err
	}
	listener, err := listen(&tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
		func(here net.Conn) {
			defer func() { _ = here.Close() }()
			var there net.Conn
			var err error
			if to.TLS {
				there, err = tls.Dial("tcp4", to.To, client)
			} else {
				there, err = net.Dial("tcp4", to.To)
			}
			if err != nil {
				fmt.Fprintln(os.Stderr, "relay:", err)
				return
			}
			defer func() { _ = there.Close() }()
			go func() { _, _ = io.Copy(plain{there}, plain{here}) }()
			_, _ = io.Copy(plain{here}, plain{there})
		})
	if err != nil {
		return nil, nil, err
	}
	return address(listener), func() { _ = listener.Close() }, nil
}

// agentConfig is where the agent's tunnel goes, and where the app is.
type agentConfig struct {
	way
	Source string
}

// Agent keeps a node's tunnel as the node's agent does, and connects every stream to the source. It has no address: its
// command "address" answers with an empty one, once the tunnel is connected.
func Agent(ctx context.Context, raw json.RawMessage) (process.Commands, func(), error) {
	var config agentConfig
	if err := json.Unmarshal(raw, &config); err != nil {
		return nil, nil, err
	}
	client, err := config.client()
	if err != nil {
		return nil, nil, err
	}
	conn, err := tunnel.Dial(ctx, "https://"+config.To+tunnel.NodePath, config.Token,
		&http.Transport{TLSClientConfig: client})
	if err != nil {
		return nil, nil, err
	}
	session, err := tunnel.NewSession(conn, false)
	if err != nil {
		return nil, nil, err
	}
	go func() {
		_ = session.Serve(ctx, func(_ context.Context, _ tunnel.Open, stream *tunnel.Stream) error {
			there, err := net.Dial("tcp4", config.Source)
			if err != nil {
				return err
			}
			if err := stream.Granted(); err != nil {
				return err
			}
			tunnel.Join(stream.Conn, there)
			return nil
		})
	}()
	return process.WithMeasures(process.Commands{
		"address": func(json.RawMessage) (any, error) { return "", nil },
	}), func() { _ = session.Close() }, nil
}
