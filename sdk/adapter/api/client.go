package api

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"sync"
	"time"

	"github.com/Khan/genqlient/graphql"
	"go.opentelemetry.io/otel/trace"

	"github.com/gpuaas/app-platform/sdk/adapter/contract"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

const (
	// maxAnswer is the largest GraphQL answer read, in bytes.
	maxAnswer = 4 << 20
	// callTimeout bounds one GraphQL call; it is longer than any wait the API offers.
	callTimeout = 40 * time.Second
	// renewBefore is how long before its end a token is renewed, and renewPause the shortest time
	// between two tries, so that a short-lived token does not double every call.
	renewBefore = 2 * time.Minute
	renewPause  = 15 * time.Second
)

// Client speaks to the public API with a narrowed token, which it renews before its end. It is
// safe for concurrent use. The kit makes one for each run. Every function of
// sdk/client/generated/gql takes it, for what an adapter wants to know beyond [Tasks]:
//
//	answer, err := gql.GetInstance(ctx, run.Client(), run.Instance().ID)
//
// A refusal is a [*client.Error].
type Client struct {
	log           *slog.Logger
	correlationID string

	mu       sync.Mutex
	platform contract.Platform
	renewed  time.Time
	// api speaks to platform.GraphQLURL; where that is not an address, failure says why.
	api     *client.Client
	failure error
}

var (
	_ Tasks          = (*Client)(nil)
	_ graphql.Client = (*Client)(nil)
)

// NewClient returns a client with this access. The correlation id goes out with every call. A
// nil log discards. An invalid address is the error of every call.
func NewClient(platform contract.Platform, correlationID string, log *slog.Logger) *Client {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	c := &Client{log: log, correlationID: correlationID}
	c.SetPlatform(platform)
	return c
}

// SetPlatform replaces the access, when a new dispatch brought a new token.
func (c *Client) SetPlatform(platform contract.Platform) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.platform.GraphQLURL != platform.GraphQLURL || c.api == nil {
		c.api, c.failure = c.connect(platform.GraphQLURL)
	}
	c.platform = platform
}

// Platform returns the access now in use.
func (c *Client) Platform() contract.Platform {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.platform
}

// connect makes the typed client of an endpoint. It tries every call once: how long to persist
// is decided here, call by call, and two loops would multiply.
func (c *Client) connect(endpoint string) (*client.Client, error) {
	at, err := url.Parse(endpoint)
	if err != nil {
		return nil, &client.Error{Code: contract.CodeInvalid, Message: "platform.graphqlUrl is not a URL", Err: err}
	}
	path := at.EscapedPath()
	at.Path, at.RawPath = "", ""
	api, err := client.New(at.String(), client.Options{
		GraphQLPath: path, UserAgent: "gpuaas-adapter-kit", MaxAttempts: 1,
		MaxResponseBytes: maxAnswer, RequestTimeout: callTimeout,
		TokenSource: func(context.Context) (string, error) { return c.Platform().Token, nil },
	})
	if err != nil {
		return nil, &client.Error{Code: contract.CodeInvalid, Message: "platform.graphqlUrl: " + err.Error(), Err: err}
	}
	return api, nil
}

// TraceID returns the id of the trace that a W3C trace context names; "" for one that is malformed.
func TraceID(traceparent string) string {
	at := trace.SpanContextFromContext(client.WithTraceparent(context.Background(), traceparent))
	if !at.IsValid() {
		return ""
	}
	return at.TraceID().String()
}

// MakeRequest sends one query or mutation, once; the functions of sdk/client/generated/gql call it.
func (c *Client) MakeRequest(ctx context.Context, req *graphql.Request, resp *graphql.Response) error {
	c.renewIfDue(ctx)
	return c.send(ctx, req, resp)
}

func (c *Client) send(ctx context.Context, req *graphql.Request, resp *graphql.Response) error {
	c.mu.Lock()
	api, failure := c.api, c.failure
	c.mu.Unlock()
	if failure != nil {
		return failure
	}
	return api.MakeRequest(client.WithCorrelationID(ctx, c.correlationID), req, resp)
}

// unrenewed sends with the token as it is.
type unrenewed struct{ *Client }

// MakeRequest implements graphql.Client.
func (u unrenewed) MakeRequest(ctx context.Context, req *graphql.Request, resp *graphql.Response) error {
	return u.send(ctx, req, resp)
}

// renewIfDue gets a fresh token shortly before the old one ends. A failure is left to the call
// itself: its refusal says more. A token without an end is not renewed.
func (c *Client) renewIfDue(ctx context.Context) {
	if !c.claimRenewal() {
		return
	}
	fresh, err := gql.RenewOperationToken(ctx, unrenewed{c})
	if err == nil && fresh.RenewOperationToken.Token == "" {
		err = errors.New("the platform returned no token")
	}
	if err != nil {
		c.log.DebugContext(ctx, "operation token not renewed", "error", err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.platform.Token = fresh.RenewOperationToken.Token
	c.platform.TokenExpiresAt = fresh.RenewOperationToken.ExpiresAt
}

// claimRenewal reports whether a renewal is due and the caller's to do.
func (c *Client) claimRenewal() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	ends := c.platform.TokenExpiresAt
	if ends.IsZero() || time.Until(ends) >= renewBefore || time.Since(c.renewed) <= renewPause {
		return false
	}
	c.renewed = time.Now()
	return true
}
