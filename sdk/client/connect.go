package client

import (
	"context"
	"errors"
	"io"
	"net/url"
	"strconv"

	"github.com/gpuaas/app-platform/sdk/tunnel"
)

// Exec runs a command in a member. The caller writes its input and reads its output from the connection, by
// tunnel.WriteFrame and tunnel.ReadFrame. The command ends with the connection. The reason is kept in the audit.
// The error is an *Error where the platform refused.
func (c *Client) Exec(ctx context.Context, memberID, reason string, command tunnel.Exec) (io.ReadWriteCloser, error) {
	query := url.Values{"member": {memberID}, "reason": {reason}, "command": command.Command}
	if command.User != "" {
		query.Set("user", command.User)
	}
	if command.TTY {
		query.Set("tty", "1")
		query.Set("rows", strconv.Itoa(int(command.Rows)))
		query.Set("cols", strconv.Itoa(int(command.Cols)))
	}
	return c.upgrade(ctx, tunnel.ExecPath, query)
}

// Connect opens a connection to an endpoint of an instance: what is written reaches the program that listens there.
// memberID chooses one of the members that serve it; empty takes any. The connection outlives ctx, and ends within
// seconds after the right to the endpoint ends. The error is an *Error where the platform refused.
func (c *Client) Connect(ctx context.Context, instanceID, endpoint, memberID string) (io.ReadWriteCloser, error) {
	query := url.Values{"instance": {instanceID}, "endpoint": {endpoint}}
	if memberID != "" {
		query.Set("member", memberID)
	}
	return c.upgrade(ctx, tunnel.ConnectPath, query)
}

// Shell opens a connection to the SSH server that the platform runs for a member; it carries SSH. The caller logs in
// with a certificate from issueSshCertificate. The reason is kept in the audit. The connection outlives ctx, and ends
// within seconds after the right to it ends. The error is an *Error where the platform refused.
func (c *Client) Shell(ctx context.Context, memberID, reason string) (io.ReadWriteCloser, error) {
	return c.upgrade(ctx, tunnel.ConnectPath, url.Values{"member": {memberID}, "reason": {reason}})
}

// upgrade opens a connection at a path.
func (c *Client) upgrade(ctx context.Context, path string, query url.Values) (io.ReadWriteCloser, error) {
	token, err := c.token(ctx)
	if err != nil {
		return nil, err
	}
	conn, err := tunnel.Dial(ctx, c.endpoint(path)+"?"+query.Encode(), token, c.http.Transport)
	var refused *tunnel.Refusal
	if errors.As(err, &refused) {
		return nil, &Error{Code: refused.Code, Message: refused.Message}
	}
	return conn, err
}
