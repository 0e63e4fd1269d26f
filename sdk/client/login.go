package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
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
	return c.redeem(ctx, map[string]string{"code": code, "client": "cli"})
}

// LoginBound redeems the one-time code that a login in a browser sent to this program, with the verifier whose S256
// challenge began the login (RFC 7636). Its errors are those of Login.
func (c *Client) LoginBound(ctx context.Context, code, verifier string) (*Session, error) {
	if code == "" || verifier == "" {
		return nil, errors.New("login code and verifier: must not be empty")
	}
	return c.redeem(ctx, map[string]string{"code": code, "client": "cli", "verifier": verifier})
}

func (c *Client) redeem(ctx context.Context, request map[string]string) (*Session, error) {
	body, err := json.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("encode login: %w", err)
	}
	answer, err := c.auth(ctx, "/auth/login", body)
	if err != nil {
		return nil, err
	}
	var session Session
	if err := json.Unmarshal(answer, &session); err != nil || session.Token == "" {
		return nil, &Error{Code: CodeInternal,
			Message: "the server answered the login without a token: is the address right?"}
	}
	return &session, nil
}

// Token is a short-lived credential that speaks for a service account.
type Token struct {
	// AccessToken is the credential for Options.Token.
	AccessToken string `json:"access_token"`
	// ExpiresAt is when it stops working; it is revoked with its key before that.
	ExpiresAt time.Time `json:"expires_at"`
	// Scope is the permission keys that it may use, separated by spaces.
	Scope string `json:"scope"`
}

// Exchange returns a short-lived token for the service-account key that is the client's credential. ttl is 5 minutes to
// an hour; permissions narrow the token, none gives it all of the account's. Any other credential is FORBIDDEN.
func (c *Client) Exchange(ctx context.Context, ttl time.Duration, permissions ...string) (*Token, error) {
	body, err := json.Marshal(map[string]any{
		"grant_type": "client_credentials", "expires_in": int(ttl.Seconds()), "scope": strings.Join(permissions, " "),
	})
	if err != nil {
		return nil, fmt.Errorf("encode exchange: %w", err)
	}
	answer, err := c.auth(ctx, "/auth/token", body)
	if err != nil {
		return nil, err
	}
	var token Token
	if err := json.Unmarshal(answer, &token); err != nil || token.AccessToken == "" {
		return nil, &Error{Code: CodeInternal,
			Message: "the server answered the exchange without a token: is the address right?"}
	}
	return &token, nil
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
