package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/otel/propagation"
)

// Bounds and waits where Options set none.
const (
	defaultMaxAttempts    = 4
	defaultMaxResponse    = 16 << 20
	defaultRequestTimeout = 60 * time.Second
	defaultMaxDowntime    = 10 * time.Minute
	defaultUserAgent      = "gpuaas-sdk-go/1"
)

// Options say how a Client speaks to the platform. The zero value is an anonymous client with the usual bounds.
type Options struct {
	// Token is the credential for Authorization: Bearer. It is sent to the server given to New and nowhere else.
	Token string
	// TokenSource returns the credential for each request and connection, for one that rotates. It replaces Token.
	TokenSource func(context.Context) (string, error)
	// GraphQLPath is the API's path below the server's address; empty means /graphql. It begins with a slash.
	GraphQLPath string
	// HTTPClient sends the requests; its transport's TLS, proxy and dial settings also serve the feeds. Its redirect
	// policy is replaced: redirects are refused.
	HTTPClient *http.Client
	// CorrelationID is sent with every request, 1 to 64 of [A-Za-z0-9._-]; empty gives each call its own.
	CorrelationID string
	// UserAgent names the program.
	UserAgent string
	// MaxAttempts bounds the tries of a call, the first one included; 0 means 4, 1 never tries again.
	MaxAttempts int
	// MaxResponseBytes bounds an answer; 0 means 16 MiB.
	MaxResponseBytes int64
	// RequestTimeout bounds one try; 0 means 60 seconds.
	RequestTimeout time.Duration
	// MaxDowntime ends a feed that had no connection for so long; 0 means 10 minutes, negative never ends it.
	MaxDowntime time.Duration
	// OnRetry is called before every wait to try again or to reconnect; it must return quickly.
	OnRetry func(Retry)
	// OnConnect is called for every connection of a feed that the server has acknowledged; it must return quickly.
	OnConnect func()
}

// Retry says why and when something is tried again.
type Retry struct {
	// Err is why the last try failed.
	Err error
	// Attempt counts the failed tries since the last success, from 1.
	Attempt int
	// Delay is the wait before the next try.
	Delay time.Duration
}

// Client speaks to one platform with one credential. It is safe for concurrent use, keeps no connections open except
// those of its http.Client and of running feeds, and need not be closed.
type Client struct {
	base    *url.URL
	options Options
	http    *http.Client
}

// New returns a client of the platform at serverURL, such as https://gpu.example.com; a path is kept as a prefix.
// It opens no connection. The error names what is wrong with the address or the options.
func New(serverURL string, options Options) (*Client, error) {
	base, err := parseBase(serverURL)
	if err != nil {
		return nil, err
	}
	if id := options.CorrelationID; id != "" && !validCorrelationID(id) {
		return nil, errors.New("correlation id: must be 1 to 64 of letters, digits, dot, underscore and hyphen")
	}
	if strings.ContainsAny(options.Token, " \r\n\t") {
		return nil, errors.New("token: must not contain white space")
	}
	if path := options.GraphQLPath; path != "" && (path[0] != '/' || strings.ContainsAny(path, "?#")) {
		return nil, fmt.Errorf("graphql path %q: must begin with a slash and carry neither query nor fragment", path)
	}
	return &Client{base: base, options: withDefaults(options), http: ownHTTPClient(options)}, nil
}

// Server returns the address that was given to New.
func (c *Client) Server() string { return c.base.String() }

func parseBase(serverURL string) (*url.URL, error) {
	base, err := url.Parse(strings.TrimRight(serverURL, "/"))
	if err != nil {
		return nil, fmt.Errorf("server address: %w", err)
	}
	if (base.Scheme != "http" && base.Scheme != "https") || base.Host == "" {
		return nil, fmt.Errorf("server address %q: must begin with http:// or https:// and name a host", serverURL)
	}
	if base.User != nil || base.RawQuery != "" || base.Fragment != "" {
		return nil, errors.New("server address: must not carry user, query or fragment")
	}
	return base, nil
}

func withDefaults(options Options) Options {
	if options.GraphQLPath == "" {
		options.GraphQLPath = "/graphql"
	}
	if options.UserAgent == "" {
		options.UserAgent = defaultUserAgent
	}
	if options.MaxAttempts <= 0 {
		options.MaxAttempts = defaultMaxAttempts
	}
	if options.MaxResponseBytes <= 0 {
		options.MaxResponseBytes = defaultMaxResponse
	}
	if options.RequestTimeout <= 0 {
		options.RequestTimeout = defaultRequestTimeout
	}
	if options.MaxDowntime == 0 {
		options.MaxDowntime = defaultMaxDowntime
	}
	return options
}

// ownHTTPClient copies the caller's client, so that refusing redirects does not change theirs.
func ownHTTPClient(options Options) *http.Client {
	own := http.Client{}
	if options.HTTPClient != nil {
		own = *options.HTTPClient
	}
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &own
}

// endpoint is the address of a path below the server's.
func (c *Client) endpoint(path string) string { return c.base.String() + path }

// token is the credential of the next request; empty for an anonymous client.
func (c *Client) token(ctx context.Context) (string, error) {
	if c.options.TokenSource == nil {
		return c.options.Token, nil
	}
	token, err := c.options.TokenSource(ctx)
	if err != nil {
		return "", fmt.Errorf("get credential: %w", err)
	}
	return token, nil
}

// headers are those of every request and upgrade.
func (c *Client) headers(ctx context.Context, correlationID string) (http.Header, error) {
	token, err := c.token(ctx)
	if err != nil {
		return nil, err
	}
	header := http.Header{}
	header.Set("User-Agent", c.options.UserAgent)
	header.Set("X-Correlation-Id", correlationID)
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(header))
	if token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	return header, nil
}
