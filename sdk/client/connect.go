package client

import (
	"context"
	"errors"
	"io"
	"net/url"

	"github.com/gpuaas/app-platform/sdk/tunnel"
)

// Connect opens a connection to an endpoint of an instance: what is written reaches the program that listens there. A
// memberID chooses one of the members that serve it; empty takes any. The connection stays after ctx ends, and ends
// within seconds of the right to the endpoint. The error is an *Error where the platform refused.
func (c *Client) Connect(ctx context.Context, instanceID, endpoint, memberID string) (io.ReadWriteCloser, error) {
	token, err := c.token(ctx)
	if err != nil {
		return nil, err
	}
	query := url.Values{"instance": {instanceID}, "endpoint": {endpoint}}
	if memberID != "" {
		query.Set("member", memberID)
	}
	conn, err := tunnel.Dial(ctx, c.endpoint(tunnel.ConnectPath)+"?"+query.Encode(), token, c.http.Transport)
	var refused *tunnel.Refusal
	if errors.As(err, &refused) {
		return nil, &Error{Code: refused.Code, Message: refused.Message}
	}
	return conn, err
}
