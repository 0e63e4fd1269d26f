package agent

import (
	"context"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/sshd"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/streams"
	"github.com/gpuaas/app-platform/sdk/tunnel"
)

// tunnel holds the connection over which the platform reaches what runs on this node, and serves its streams until it
// breaks.
func (a *Agent) tunnel(ctx context.Context) error {
	logins, err := sshd.New(a.sandboxes)
	if err != nil {
		return err
	}
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
	return session.Serve(ctx, (&streams.Server{Members: a.sandboxes, Logs: a.logs, Metrics: a.metrics, SSH: logins,
		Files: a.files}).Serve)
}
