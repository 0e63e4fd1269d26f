package adapter

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"
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

// Client speaks GraphQL over HTTP to the public API with a narrowed token. It is safe for
// concurrent use. The kit makes one for each run; an adapter may send documents of its own.
type Client struct {
	http          *http.Client
	log           *slog.Logger
	correlationID string

	mu       sync.Mutex
	platform Platform
	renewed  time.Time
}

var _ Tasks = (*Client)(nil)

// NewClient returns a client with this access. The correlation id goes out with every call. A
// nil log discards.
func NewClient(platform Platform, correlationID string, log *slog.Logger) *Client {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Client{
		http: &http.Client{Timeout: callTimeout, CheckRedirect: noRedirect},
		log:  log, correlationID: correlationID, platform: platform,
	}
}

// SetPlatform replaces the access, when a new dispatch brought a new token.
func (c *Client) SetPlatform(platform Platform) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.platform = platform
}

// Platform returns the access now in use.
func (c *Client) Platform() Platform {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.platform
}

// PlatformError is an answer of the public API that is an error.
type PlatformError struct {
	// Status is the HTTP status.
	Status int
	// Code is the code of the error catalogue, or empty.
	Code string
	// Message is the API's text.
	Message string
	// Retryable says whether the same call may succeed later.
	Retryable bool
}

// Error returns the code and the text.
func (e *PlatformError) Error() string {
	return fmt.Sprintf("platform answered %d %s: %s", e.Status, e.Code, e.Message)
}

// Query sends one document and decodes its data into out, which may be nil. A refusal is a
// *[PlatformError]; any other error is a connection failure and worth another try.
func (c *Client) Query(ctx context.Context, document string, variables map[string]any, out any) error {
	c.renewIfDue(ctx)
	return c.query(ctx, document, variables, out)
}

func (c *Client) query(ctx context.Context, document string, variables map[string]any, out any) error {
	body, err := json.Marshal(map[string]any{"query": document, "variables": variables})
	if err != nil {
		return fmt.Errorf("encode query: %w", err)
	}
	platform := c.Platform()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, platform.GraphQLURL, bytes.NewReader(body))
	if err != nil {
		return &PlatformError{Code: CodeInvalid, Message: "platform.graphqlUrl is not a URL"}
	}
	req.Header.Set("Authorization", "Bearer "+platform.Token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/graphql-response+json, application/json")
	if c.correlationID != "" {
		req.Header.Set(HeaderCorrelation, c.correlationID)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("call platform: %w", err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return fmt.Errorf("call platform: %w", err)
	}
	return decodeAnswer(resp.StatusCode, raw, out)
}

// decodeAnswer reads a GraphQL answer. An answer that is not one comes from something in
// between, and is worth another try when its status says so.
func decodeAnswer(status int, raw []byte, out any) error {
	var answer struct {
		Data   json.RawMessage
		Errors []struct {
			Message    string
			Extensions struct {
				Code      string
				Retryable bool
			}
		}
	}
	if len(raw) > maxAnswer {
		return &PlatformError{Status: status, Code: CodeTooLarge, Message: "the answer is too large"}
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return &PlatformError{Status: status, Message: "the answer is not JSON", Retryable: transient(status)}
	}
	if len(answer.Errors) > 0 {
		first := answer.Errors[0]
		return &PlatformError{
			Status: status, Code: first.Extensions.Code, Message: clip(first.Message, MaxMessage),
			Retryable: first.Extensions.Retryable || transient(status),
		}
	}
	if status != http.StatusOK || isNull(answer.Data) {
		return &PlatformError{Status: status, Message: "the answer has no data", Retryable: transient(status)}
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(answer.Data, out); err != nil {
		return &PlatformError{Status: status, Message: "the answer is not of the expected shape"}
	}
	return nil
}

func transient(status int) bool {
	return status == http.StatusTooManyRequests || status >= http.StatusInternalServerError
}

// renewIfDue gets a fresh token shortly before the old one ends. A failure is left to the call
// itself: its refusal says more. A token without an end is not renewed.
func (c *Client) renewIfDue(ctx context.Context) {
	c.mu.Lock()
	ends := c.platform.TokenExpiresAt
	due := !ends.IsZero() && time.Until(ends) < renewBefore && time.Since(c.renewed) > renewPause
	if due {
		c.renewed = time.Now()
	}
	c.mu.Unlock()
	if !due {
		return
	}
	var fresh struct {
		RenewOperationToken struct {
			Token     string
			ExpiresAt time.Time
		}
	}
	err := c.query(ctx, renewDoc, nil, &fresh)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil || fresh.RenewOperationToken.Token == "" {
		c.log.DebugContext(ctx, "operation token not renewed", "error", err)
		return
	}
	c.platform.Token = fresh.RenewOperationToken.Token
	c.platform.TokenExpiresAt = fresh.RenewOperationToken.ExpiresAt
}

// memberInput is a member update as the public API takes it: its enums are upper case.
func memberInput(member MemberUpdate) map[string]any {
	input := map[string]any{"id": member.ID}
	if member.Status != "" {
		input["status"] = strings.ToUpper(string(member.Status))
	}
	if member.Health != "" {
		input["health"] = strings.ToUpper(string(member.Health))
	}
	if !isNull(member.Detail) {
		input["detail"] = member.Detail
	}
	return input
}
