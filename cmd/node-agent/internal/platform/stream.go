package platform

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
	"github.com/gpuaas/app-platform/sdk/tunnel"
)

// errStreamEnded is the platform's own, orderly end of the stream.
var errStreamEnded = errors.New("the platform ended the stream")

// Tasks subscribes to the node's tasks and hands each to take, until ctx ends or the connection breaks.
// It calls ready once the platform accepted the connection. It always returns an error that says why it
// ended.
//
// The feed of the typed client would connect again by itself, with the credential it has. The agent opens
// each connection itself, as the next one is due the moment a refused credential was replaced.
func (c *Client) Tasks(ctx context.Context, who Credentials, ready func(), take func(gql.NodeWork)) error {
	token := who.Token()
	accepted := func() {
		who.Accepted(token)
		ready()
	}
	err := c.tasks(ctx, token, accepted, take)
	if Unauthenticated(err) {
		who.Refused(token)
	}
	return fmt.Errorf("task stream: %w", err)
}

// Tunnel opens the connection over which the platform reaches what runs on the node.
func (c *Client) Tunnel(ctx context.Context, who Credentials) (io.ReadWriteCloser, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	token := who.Token()
	conn, err := tunnel.Dial(ctx, c.base+tunnel.NodePath, token, c.http.Transport)
	var refused *tunnel.Refusal
	switch {
	case err == nil:
		who.Accepted(token)
	case errors.As(err, &refused) && refused.Code == client.CodeUnauthenticated:
		who.Refused(token)
	}
	return conn, err
}

// tasks reads the feed over one connection.
func (c *Client) tasks(ctx context.Context, token string, accepted func(), take func(gql.NodeWork)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	api, err := c.as(token, client.Options{
		OnConnect: accepted,
		OnRetry:   func(broken client.Retry) { cancel(broken.Err) },
	})
	if err != nil {
		return err
	}
	for work, err := range api.NodeTasks(ctx) {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		if err != nil {
			return err
		}
		take(*work)
	}
	return errStreamEnded
}
