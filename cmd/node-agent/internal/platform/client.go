package platform

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
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
	// Refused says that the platform answered UNAUTHENTICATED to the token.
	Refused(token string)
}

// Client calls one platform. It is safe for use by many goroutines.
type Client struct {
	endpoint string
	http     *http.Client
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
	parsed.Path = strings.TrimSuffix(strings.TrimSuffix(parsed.Path, "/"), "/graphql") + "/graphql"
	refuse := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{
		endpoint: parsed.String(),
		http:     &http.Client{Timeout: callTimeout, Transport: transport, CheckRedirect: refuse},
	}, nil
}

const (
	enrolDoc     = `mutation EnrolNode($input: EnrolNodeInput!) { enrolNode(input: $input) { node { id name } credential expiresAt } }`
	rotateDoc    = `mutation RotateNodeCredential { rotateNodeCredential { credential expiresAt } }`
	heartbeatDoc = `mutation NodeHeartbeat($input: NodeHeartbeatInput!) { nodeHeartbeat(input: $input) { id } }`
	reportDoc    = `mutation ReportNodeTask($input: ReportNodeTaskInput!) { reportNodeTask(input: $input) { id } }`
	appendDoc    = `mutation AppendNodeTaskOutput($input: AppendNodeTaskOutputInput!) { appendNodeTaskOutput(input: $input) }`
	tasksDoc     = `subscription NodeTasks { nodeTasks { id fence kind state spec timeoutSeconds memberId instanceId cancelRequested } }`
)

// Enrol trades a one-time token for a credential.
func (c *Client) Enrol(ctx context.Context, token string, input EnrolInput) (Enrolled, error) {
	var data struct{ EnrolNode Enrolled }
	err := c.call(ctx, fixed(token), "EnrolNode", enrolDoc, input, &data)
	return data.EnrolNode, err
}

// Rotate gets a fresh credential; the earlier one works until the new one is first used.
func (c *Client) Rotate(ctx context.Context, who Credentials) (Credential, error) {
	var data struct{ RotateNodeCredential Credential }
	err := c.call(ctx, who, "RotateNodeCredential", rotateDoc, nil, &data)
	return data.RotateNodeCredential, err
}

// Heartbeat says that the node is alive.
func (c *Client) Heartbeat(ctx context.Context, who Credentials, input Heartbeat) error {
	return c.call(ctx, who, "NodeHeartbeat", heartbeatDoc, input, nil)
}

// Report says where a task stands.
func (c *Client) Report(ctx context.Context, who Credentials, input Report) error {
	return c.call(ctx, who, "ReportNodeTask", reportDoc, input, nil)
}

// Append sends a piece of output and gives the next offset that the platform wants.
func (c *Client) Append(ctx context.Context, who Credentials, input Output) (int, error) {
	var data struct{ AppendNodeTaskOutput int }
	err := c.call(ctx, who, "AppendNodeTaskOutput", appendDoc, input, &data)
	return data.AppendNodeTaskOutput, err
}

// fixed is a credential that nobody keeps.
type fixed string

func (f fixed) Token() string { return string(f) }
func (fixed) Accepted(string) {}
func (fixed) Refused(string)  {}

type request struct {
	Query         string         `json:"query"`
	OperationName string         `json:"operationName"`
	Variables     map[string]any `json:"variables,omitempty"`
}

type answer struct {
	Data   json.RawMessage `json:"data"`
	Errors []answerError   `json:"errors"`
}

type answerError struct {
	Message    string `json:"message"`
	Extensions struct {
		Code          string `json:"code"`
		CorrelationID string `json:"correlation_id"`
		Retryable     bool   `json:"retryable"`
	} `json:"extensions"`
}

func (c *Client) call(ctx context.Context, who Credentials, name, document string, input, out any) error {
	token := who.Token()
	err := c.post(ctx, token, request{Query: document, OperationName: name, Variables: variables(input)}, out)
	if HasCode(err, CodeUnauthenticated) {
		who.Refused(token)
	} else if err == nil {
		who.Accepted(token)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func variables(input any) map[string]any {
	if input == nil {
		return nil
	}
	return map[string]any{"input": input}
}

func (c *Client) post(ctx context.Context, token string, content request, out any) error {
	body, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("encode request: %w", err)
	}
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	post.Header = header(token)
	post.Header.Set("Content-Type", "application/json")
	post.Header.Set("Accept", "application/graphql-response+json, application/json")
	response, err := c.http.Do(post)
	if err != nil {
		return fmt.Errorf("reach the platform: %w", err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	return interpret(response.StatusCode, raw, out)
}

func header(token string) http.Header {
	return http.Header{
		"Authorization":    {"Bearer " + token},
		"X-Correlation-Id": {"node-" + rand.Text()},
		"User-Agent":       {"gpuaas-node-agent"},
	}
}

// interpret prefers what the body says; an answer of something in between has only its status.
func interpret(status int, raw []byte, out any) error {
	var content answer
	if err := json.Unmarshal(raw, &content); err != nil || len(content.Errors) == 0 && status != http.StatusOK {
		return statusError(status)
	}
	if len(content.Errors) > 0 {
		return content.Errors[0].typed(status)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(content.Data, out); err != nil {
		return fmt.Errorf("decode answer: %w", err)
	}
	return nil
}

func (e answerError) typed(status int) error {
	if e.Extensions.Code == "" {
		typed := statusError(status)
		typed.Message = e.Message
		return typed
	}
	return &Error{
		Code: e.Extensions.Code, Message: e.Message,
		CorrelationID: e.Extensions.CorrelationID, Retryable: e.Extensions.Retryable,
	}
}

func statusError(status int) *Error {
	code := "UNAVAILABLE"
	switch status {
	case http.StatusUnauthorized:
		code = CodeUnauthenticated
	case http.StatusForbidden:
		code = "FORBIDDEN"
	case http.StatusRequestEntityTooLarge:
		code = CodeTooLarge
	case http.StatusOK, http.StatusBadRequest, http.StatusUnprocessableEntity:
		code = "DOCUMENT_INVALID"
	}
	return &Error{Code: code, Message: fmt.Sprintf("the platform answered with status %d", status)}
}
