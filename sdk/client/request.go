package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/Khan/genqlient/graphql"
)

var _ graphql.Client = (*Client)(nil)

// MakeRequest sends a query or mutation; the generated functions call it. A refusal is an *Error. Data that came
// beside an error is still decoded into resp.
func (c *Client) MakeRequest(ctx context.Context, req *graphql.Request, resp *graphql.Response) error {
	body, err := json.Marshal(req)
	if err != nil {
		return fmt.Errorf("encode %s: %w", req.OpName, err)
	}
	call := call{path: c.options.GraphQLPath, body: body, name: req.OpName, correlationID: c.correlationID(ctx)}
	call.repeatable = isRepeatable(ctx) || harmless(req.Query, body)
	return c.withRetries(ctx, call, func(ctx context.Context) (http.Header, error) {
		return c.tryGraphQL(ctx, call, resp)
	})
}

// call is one request with what its repetitions share.
type call struct {
	path, name, correlationID string
	body                      []byte
	repeatable                bool
}

// tryGraphQL sends the call once and decodes the answer.
func (c *Client) tryGraphQL(ctx context.Context, call call, resp *graphql.Response) (http.Header, error) {
	status, header, body, err := c.post(ctx, call)
	if err != nil {
		return header, err
	}
	var answer struct {
		Data   json.RawMessage `json:"data"`
		Errors []wireError     `json:"errors"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || (len(answer.Errors) == 0 && status != http.StatusOK) {
		return header, notGraphQL(status, header, body)
	}
	empty := len(answer.Data) == 0 || string(answer.Data) == "null"
	if empty && len(answer.Errors) == 0 {
		return header, notGraphQL(status, header, body)
	}
	if !empty {
		if err := json.Unmarshal(answer.Data, resp.Data); err != nil {
			return header, misshapen(call, status, err)
		}
	}
	if len(answer.Errors) > 0 {
		return header, fromBody(status, header, body)
	}
	return header, nil
}

// misshapen is the error of an answer that does not fit the schema this client was generated from.
func misshapen(call call, status int, err error) error {
	return &Error{
		Code: CodeInternal, Message: "the answer of " + call.name + " is not of the expected shape: " + err.Error(),
		CorrelationID: call.correlationID, HTTPStatus: status, Err: err,
	}
}

// notGraphQL returns the error of an answer that is not a GraphQL answer, also when its status claims success.
func notGraphQL(status int, header http.Header, body []byte) error {
	found := fromBody(status, header, body)
	if status < http.StatusBadRequest {
		found.Code = CodeInternal
		found.Message = fmt.Sprintf("the server answered %d without a GraphQL answer: is the address right?", status)
	}
	return found
}

// post sends the call once and reads the answer up to its bound.
func (c *Client) post(ctx context.Context, call call) (int, http.Header, []byte, error) {
	attempt, cancel := context.WithTimeout(ctx, c.options.RequestTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(attempt, http.MethodPost, c.endpoint(call.path), bytes.NewReader(call.body))
	if err != nil {
		return 0, nil, nil, fmt.Errorf("create request: %w", err)
	}
	if req.Header, err = c.headers(ctx, call.correlationID); err != nil {
		return 0, nil, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/graphql-response+json, application/json;q=0.9")
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, nil, nil, transportError(ctx, call, err)
	}
	defer resp.Body.Close()
	body, err := readBounded(resp.Body, c.options.MaxResponseBytes)
	if err != nil {
		return resp.StatusCode, resp.Header, nil, transportError(ctx, call, err)
	}
	return resp.StatusCode, resp.Header, body, nil
}

var errTooLarge = errors.New("the answer is larger than the client reads")

func readBounded(from io.Reader, limit int64) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(from, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(body)) > limit {
		return nil, fmt.Errorf("%w: more than %d bytes", errTooLarge, limit)
	}
	return body, nil
}

// transportError distinguishes a context of the caller that has ended from a server that cannot be reached.
func transportError(ctx context.Context, call call, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", call.name, ctx.Err())
	}
	if errors.Is(err, errTooLarge) {
		return &Error{Code: CodeMessageTooLarge, Message: err.Error(), CorrelationID: call.correlationID, Err: err}
	}
	found := unreachable(err)
	found.CorrelationID = call.correlationID
	return found
}

// neverSent reports whether the request cannot have reached the server.
func neverSent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// harmless reports whether the request may be repeated: a query, or a mutation whose input has an idempotency key.
func harmless(query string, body []byte) bool {
	query = strings.TrimSpace(query)
	if strings.HasPrefix(query, "query") || strings.HasPrefix(query, "{") {
		return true
	}
	var request struct {
		Variables struct {
			Input struct {
				IdempotencyKey string `json:"idempotencyKey"`
			} `json:"input"`
		} `json:"variables"`
	}
	return json.Unmarshal(body, &request) == nil && request.Variables.Input.IdempotencyKey != ""
}
