package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
)

// Send sends one request that is not GraphQL to a path of the server, percent-encoded, with its query, and returns the
// answer, whose body the caller closes. It is tried once, and lasts as long as its bytes take. length is that of body,
// in bytes. A refusal is an *Error, beside the answer with its body closed. Without an answer the response is nil.
func (c *Client) Send(ctx context.Context, method, path string, body io.Reader, length int64, header http.Header) (
	*http.Response, error) {
	sent := call{name: method, correlationID: c.correlationID(ctx)}
	req, err := http.NewRequestWithContext(ctx, method, c.endpoint(path), body)
	if err != nil {
		return nil, fmt.Errorf("create request: %w", err)
	}
	if req.Header, err = c.headers(ctx, sent.correlationID); err != nil {
		return nil, err
	}
	for name, values := range header {
		req.Header[name] = values
	}
	req.ContentLength = length
	if length == 0 {
		req.Body = http.NoBody
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, transportError(ctx, sent, err)
	}
	if resp.StatusCode < http.StatusMultipleChoices {
		return resp, nil
	}
	defer resp.Body.Close()
	refused, err := io.ReadAll(io.LimitReader(resp.Body, maxRefusalBody))
	if err != nil {
		return resp, transportError(ctx, sent, err)
	}
	return resp, fromBody(resp.StatusCode, resp.Header, refused)
}
