package sandbox

import (
	"context"
	"net"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

// Execution is a command in a member that somebody works with. It ends when it is closed.
type Execution struct {
	conn   net.Conn
	client *Client
}

// Exec starts a command that somebody works with. An init of an older agent does not know how.
func (c *Client) Exec(ctx context.Context, command wire.Exec) (*Execution, error) {
	conn, err := c.dial(ctx)
	if err != nil {
		return nil, err
	}
	if err = wire.Write(conn, wire.Request{Op: wire.OpExec, Exec: &command}); err == nil {
		err = c.confirmed(ctx, conn, nil)
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return &Execution{conn: conn, client: c}, nil
}

// Send gives the command its next input.
func (e *Execution) Send(input wire.ExecInput) error { return wire.Write(e.conn, input) }

// Next returns what comes of the command next: an Output, or the Result, after which nothing comes.
func (e *Execution) Next(ctx context.Context) (wire.Response, error) {
	var answer wire.Response
	if err := wire.Read(e.conn, &answer); err != nil {
		return answer, e.client.lost(ctx, err)
	}
	return answer, nil
}

// Close ends the command.
func (e *Execution) Close() error { return e.conn.Close() }
