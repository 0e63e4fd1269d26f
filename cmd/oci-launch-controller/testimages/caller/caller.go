// Package caller reads who calls a launched container. The platform states it in a header that it has signed: a program
// that has the platform's published keys verifies it without a request to anyone.
package caller

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

const (
	// Header is where the platform says who calls.
	Header = "X-App-Platform-Caller"
	// Type distinguishes such a token from every other that the platform signs.
	Type = "caller+jwt"
)

// ErrNobody means that a request did not come through the platform.
var ErrNobody = errors.New("the request did not come through the platform")

// Caller is a person or a service account.
type Caller struct{ ID, Kind, Name string }

// Verifier proves callers of one instance.
type Verifier struct {
	keys     jose.JSONWebKeySet
	instance string
}

// NewVerifier reads the platform's keys, as it publishes them at /.well-known/jwks.json.
func NewVerifier(keys, instance string) (*Verifier, error) {
	v := &Verifier{instance: instance}
	if err := json.Unmarshal([]byte(keys), &v.keys); err != nil {
		return nil, fmt.Errorf("the platform's keys cannot be read: %w", err)
	}
	return v, nil
}

// Of returns who makes a request now, proved.
func (v *Verifier) Of(r *http.Request, now time.Time) (Caller, error) {
	text := r.Header.Get(Header)
	if text == "" {
		return Caller{}, ErrNobody
	}
	token, err := jwt.ParseSigned(text, []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil || len(token.Headers) != 1 {
		return Caller{}, errors.New("the caller's token cannot be read")
	}
	if token.Headers[0].ExtraHeaders[jose.HeaderType] != Type {
		return Caller{}, errors.New("the token is not of the type " + Type)
	}
	var registered jwt.Claims
	var about struct {
		Kind string `json:"kind"`
		Name string `json:"name"`
	}
	if err := token.Claims(&v.keys, &registered, &about); err != nil {
		return Caller{}, errors.New("no key of the platform has signed it")
	}
	registered.IssuedAt = nil // nbf decides: this machine's clock may be behind the platform's
	expected := jwt.Expected{AnyAudience: jwt.Audience{v.instance}, Time: now}
	if err := registered.ValidateWithLeeway(expected, 0); err != nil {
		return Caller{}, fmt.Errorf("it is not valid for this instance now (%w)", err)
	}
	return Caller{ID: registered.Subject, Kind: about.Kind, Name: about.Name}, nil
}
