// Package platform is the agent's use of the platform's public API, over sdk/client as any program
// outside of the platform uses it: the mutations and the one subscription that a node needs, each call
// with the current credential, whose keeper learns whether it was accepted or refused.
package platform

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

const (
	// callTimeout bounds a query or mutation.
	callTimeout = 20 * time.Second
	// maxAnswer bounds an answer, in bytes.
	maxAnswer = 4 << 20
)

// Credentials gives the credential to use and learns how it fared. Its methods may be called by many
// goroutines.
type Credentials interface {
	// Token is the credential to use now.
	Token() string
	// Accepted says that the platform took the token.
	Accepted(token string)
	// Refused says that the platform does not know the token, or not any more.
	Refused(token string)
}

// Client calls one platform. It is safe for use by many goroutines.
type Client struct {
	base string
	http *http.Client
}

// NewClient takes the platform's base address, with or without /graphql. A nil transport is the
// default one.
func NewClient(platformURL string, transport http.RoundTripper) (*Client, error) {
	parsed, err := url.Parse(platformURL)
	if err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
		return nil, fmt.Errorf("platform url: %q is not an http or https address", platformURL)
	}
	if parsed.User != nil || parsed.RawQuery != "" {
		return nil, errors.New("platform url: must carry neither a user nor a query")
	}
	parsed.Path = strings.TrimSuffix(strings.TrimSuffix(parsed.Path, "/"), "/graphql")
	c := &Client{base: parsed.String(), http: &http.Client{Transport: transport}}
	if _, err := c.as("", client.Options{}); err != nil {
		return nil, fmt.Errorf("platform url: %w", err)
	}
	return c, nil
}

// as is the typed client with this credential. It tries once: the agent's own loops decide how long to
// persist, and they look after the credential meanwhile.
func (c *Client) as(token string, options client.Options) (*client.Client, error) {
	options.Token, options.HTTPClient, options.UserAgent = token, c.http, "gpuaas-node-agent"
	options.CorrelationID = "node-" + rand.Text()
	options.MaxAttempts, options.MaxResponseBytes, options.RequestTimeout = 1, maxAnswer, callTimeout
	return client.New(c.base, options)
}

// call runs one function of the typed client and reports to who whether the credential was accepted or refused.
func (c *Client) call(who Credentials, name string, run func(*client.Client) error) error {
	token := who.Token()
	api, err := c.as(token, client.Options{})
	if err == nil {
		err = run(api)
	}
	if err == nil {
		who.Accepted(token)
		return nil
	}
	if Unauthenticated(err) {
		who.Refused(token)
	}
	return fmt.Errorf("%s: %w", name, err)
}

// Enrol trades a one-time token for a credential.
func (c *Client) Enrol(ctx context.Context, token string, input gql.EnrolNodeInput) (enrolled gql.EnrolledNode,
	err error) {
	err = c.call(fixed(token), "enrol node", func(api *client.Client) error {
		answer, err := gql.EnrolNode(ctx, api, input)
		if err == nil {
			enrolled = answer.EnrolNode
		}
		return err
	})
	return enrolled, err
}

// Rotate gets a fresh credential; the earlier one works until the new one is first used.
func (c *Client) Rotate(ctx context.Context, who Credentials) (fresh gql.NodeCredential, err error) {
	err = c.call(who, "rotate credential", func(api *client.Client) error {
		answer, err := gql.RotateNodeCredential(ctx, api)
		if err == nil {
			fresh = answer.RotateNodeCredential
		}
		return err
	})
	return fresh, err
}

// Heartbeat says that the node is alive, and answers when that was by the platform's clock.
func (c *Client) Heartbeat(ctx context.Context, who Credentials, input gql.NodeHeartbeatInput) (at time.Time,
	err error) {
	err = c.call(who, "heartbeat", func(api *client.Client) error {
		answer, err := gql.NodeHeartbeat(ctx, api, input)
		if err == nil && answer.NodeHeartbeat.LastSeenAt != nil {
			at = *answer.NodeHeartbeat.LastSeenAt
		}
		return err
	})
	return at, err
}

// Report reports the state of a task.
func (c *Client) Report(ctx context.Context, who Credentials, input gql.ReportNodeTaskInput) error {
	return c.call(who, "report task", func(api *client.Client) error {
		_, err := gql.ReportNodeTask(ctx, api, input)
		return err
	})
}

// Append sends a piece of output and gives the next offset that the platform wants.
func (c *Client) Append(ctx context.Context, who Credentials, input gql.AppendNodeTaskOutputInput) (next int,
	err error) {
	err = c.call(who, "append output", func(api *client.Client) error {
		answer, err := gql.AppendNodeTaskOutput(ctx, api, input)
		if err == nil {
			next = answer.AppendNodeTaskOutput
		}
		return err
	})
	return next, err
}

// Network reads the members' network as the node needs it, waiting for another version than the known one.
func (c *Client) Network(ctx context.Context, who Credentials, known string, wait time.Duration) (view gql.NodeNetwork,
	err error) {
	err = c.call(who, "read network", func(api *client.Client) error {
		answer, err := gql.ReadNodeNetwork(ctx, api, known, int(wait.Seconds()))
		if err == nil {
			view = answer.NodeNetwork
		}
		return err
	})
	return view, err
}

// Redeem takes delivery of a runtime secret that is bound to the node, sealed to the node's key.
func (c *Client) Redeem(ctx context.Context, who Credentials, secretID string) (sealed string, err error) {
	err = c.call(who, "redeem secret", func(api *client.Client) error {
		answer, err := gql.RedeemRuntimeSecret(ctx, api, secretID)
		if err != nil {
			return err
		}
		if answer.RedeemRuntimeSecret.Sealed == nil {
			return errors.New("the platform's answer has no sealed value")
		}
		sealed = *answer.RedeemRuntimeSecret.Sealed
		return nil
	})
	return sealed, err
}

// OpenDelivery opens the delivery of the artifact that a task is for. Its address is absolute: one without a host is on
// the platform's own.
func (c *Client) OpenDelivery(ctx context.Context, who Credentials, taskID string) (delivery gql.ArtifactDelivery,
	err error) {
	err = c.call(who, "open delivery", func(api *client.Client) error {
		answer, err := gql.OpenArtifactDelivery(ctx, api, taskID)
		if err != nil {
			return err
		}
		delivery = answer.OpenArtifactDelivery
		address, err := url.Parse(delivery.Url)
		if err == nil && !address.IsAbs() {
			delivery.Url = c.base + "/" + strings.TrimPrefix(delivery.Url, "/")
		}
		return err
	})
	return delivery, err
}

// fixed is a credential that is not kept: no answer changes it.
type fixed string

func (f fixed) Token() string { return string(f) }
func (fixed) Accepted(string) {}
func (fixed) Refused(string)  {}
