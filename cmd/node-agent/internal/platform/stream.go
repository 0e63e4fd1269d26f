package platform

import (
	"context"
	"errors"
	"fmt"

	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
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
