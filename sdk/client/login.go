package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Session is a person's credential.
type Session struct {
	// Token is the credential for Options.Token.
	Token string `json:"token"`
	// ExpiresAt is when it stops working.
	ExpiresAt time.Time `json:"expiresAt"`
}

// Login redeems a one-time login code for a session. The client's own token is not needed. An unknown, used or
// expired code is UNAUTHENTICATED. A login is not repeated once it was sent, as the code works once.
func (c *Client) Login(ctx context.Context, code string) (*Session, error) {
	if code == "" {
		return nil, errors.New("login code: must not be empty")
	}
	body, err := json.Marshal(map[string]string{"code": code, "client": "cli"})
	if err != nil {
		return nil, fmt.Errorf("encode login: %w", err)
	}
	answer, err := c.auth(ctx, "/auth/login", body)
	if err != nil {
		return nil, err
	}
	var session Session
	if err := json.Unmarshal(answer, &session); err != nil || session.Token == "" {
		return nil, &Error{Code: CodeInternal, Message: "the server answered the login without a token: is the address right?"}
	}
	return &session, nil
}

// Logout ends the session of the client's token.
func (c *Client) Logout(ctx context.Context) error {
	_, err := c.auth(ctx, "/auth/logout", []byte("{}"))
	return err
}

// auth posts to one of the login paths; any 2xx is success.
func (c *Client) auth(ctx context.Context, path string, body []byte) ([]byte, error) {
	call := call{path: path, body: body, name: path, correlationID: c.correlationID(ctx)}
	var answer []byte
	err := c.withRetries(ctx, call, func(ctx context.Context) (http.Header, error) {
		status, header, read, err := c.post(ctx, call)
		if err != nil {
			return header, err
		}
		if status < 200 || status > 299 {
			return header, fromBody(status, header, read)
		}
		answer = read
		return header, nil
	})
	return answer, err
}
