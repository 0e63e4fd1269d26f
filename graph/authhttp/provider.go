package authhttp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/service/identity"
)

const (
	// providerTimeout bounds each call to the identity provider.
	providerTimeout = 10 * time.Second
	// providerBody bounds each of its answers, in bytes.
	providerBody = 1 << 20
	// providerPause is how long a provider that did not answer is left alone.
	providerPause = 2 * time.Second
	// maxSubject bounds what a provider calls a person, in bytes.
	maxSubject = 255
)

// signatures are the ways in which a provider may sign: with a key pair. No signature, or a shared secret, is refused.
var signatures = []string{oidc.RS256, oidc.ES256, oidc.EdDSA}

// OIDC is the identity provider that people log in at, and what we are to it.
type OIDC struct {
	// Issuer is the provider's identifier, exactly as its tokens have it.
	Issuer string
	// ClientID and ClientSecret are ours there; a public client has no secret.
	ClientID, ClientSecret string
	// Name is what people call the provider.
	Name string
	// RedirectURL is our callback, as it is registered there.
	RedirectURL string
}

// provider calls the identity provider. The provider's description of itself is read when it is first needed, and
// again after a failure, so that this server starts without it.
type provider struct {
	OIDC
	client *http.Client

	mu      sync.Mutex
	found   *oidc.Provider
	failure error
	retryAt time.Time
}

func newProvider(options OIDC) *provider {
	return &provider{OIDC: options, client: &http.Client{
		Timeout: providerTimeout, Transport: bounded{http.DefaultTransport},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return errors.New("the identity provider redirects its endpoints")
		},
	}}
}

// bounded cuts answers that are too long.
type bounded struct{ inner http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.inner.RoundTrip(request)
	if err == nil {
		response.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(response.Body, providerBody), response.Body}
	}
	return response, err
}

// discover returns the provider with its endpoints and keys. UNAVAILABLE when it does not answer, or names itself
// otherwise than it was configured.
func (p *provider) discover(ctx context.Context) (*oidc.Provider, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found != nil {
		return p.found, nil
	}
	if time.Now().Before(p.retryAt) {
		return nil, p.failure
	}
	// The caller may leave meanwhile; what is found is for every caller.
	found, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), p.client), p.Issuer)
	if err != nil {
		p.failure = fault.New(fault.Unavailable, "the identity provider does not answer").Because(err)
		p.retryAt = time.Now().Add(providerPause)
		return nil, p.failure
	}
	p.found = found
	return found, nil
}

// oauth returns our client at the provider.
func (p *provider) oauth(found *oidc.Provider) *oauth2.Config {
	return &oauth2.Config{
		ClientID: p.ClientID, ClientSecret: p.ClientSecret, Endpoint: found.Endpoint(), RedirectURL: p.RedirectURL,
		Scopes: []string{oidc.ScopeOpenID, "email", "profile"},
	}
}

// address returns where the browser logs in.
func (p *provider) address(ctx context.Context, attempt *identity.Attempt) (string, error) {
	found, err := p.discover(ctx)
	if err != nil {
		return "", err
	}
	return p.oauth(found).AuthCodeURL(attempt.State, oidc.Nonce(attempt.Nonce),
		oauth2.S256ChallengeOption(attempt.Verifier)), nil
}

// person returns the person whom the provider vouches for with the code. UNAUTHENTICATED when the provider does not
// take the code or its answer is not valid; UNAVAILABLE when it does not answer.
func (p *provider) person(ctx context.Context, code string, attempt *identity.Attempt) (identity.Person, error) {
	found, err := p.discover(ctx)
	if err != nil {
		return identity.Person{}, err
	}
	ctx = oidc.ClientContext(ctx, p.client)
	tokens, err := p.oauth(found).Exchange(ctx, code, oauth2.VerifierOption(attempt.Verifier))
	if err != nil {
		if refused := new(oauth2.RetrieveError); errors.As(err, &refused) && refused.Response != nil &&
			refused.Response.StatusCode < 500 {
			return identity.Person{}, unproved(err)
		}
		return identity.Person{}, fault.New(fault.Unavailable, "the identity provider does not answer").Because(err)
	}
	raw, _ := tokens.Extra("id_token").(string)
	verifier := found.VerifierContext(ctx, &oidc.Config{ClientID: p.ClientID, SupportedSigningAlgs: signatures})
	token, err := verifier.Verify(ctx, raw)
	if err != nil {
		return identity.Person{}, unproved(err)
	}
	claims, err := p.claims(token, tokens.AccessToken, attempt.Nonce)
	if err != nil {
		return identity.Person{}, unproved(err)
	}
	if claims.Email == "" { // many providers keep it out of the ID token when there is another place to ask
		if err := userInfo(ctx, found, tokens, token.Subject, &claims); err != nil {
			return identity.Person{}, err
		}
	}
	return identity.Person{Issuer: token.Issuer, Subject: token.Subject, Email: claims.Email,
		Verified: bool(claims.Verified)}, nil
}

// unproved returns the one answer to a login that is not proved; the cause is for the log.
func unproved(err error) error {
	return fault.New(fault.Unauthenticated, "the identity provider's answer does not prove who logged in").Because(err)
}

// claims holds what is read from an ID token beyond signature, issuer, audience and time.
type claims struct {
	AuthorizedParty string `json:"azp"`
	Email           string `json:"email"`
	Verified        truth  `json:"email_verified"`
}

// truth is a boolean that some providers write as text.
type truth bool

// UnmarshalJSON takes true, false and the texts of them; everything else is false.
func (t *truth) UnmarshalJSON(raw []byte) error {
	*t = string(raw) == "true" || string(raw) == `"true"`
	return nil
}

// claims checks that the ID token was issued to this client, and that it answers this very login.
func (p *provider) claims(token *oidc.IDToken, accessToken, nonce string) (out claims, err error) {
	if err := token.Claims(&out); err != nil {
		return out, err
	}
	switch {
	case token.Nonce == "" || token.Nonce != nonce:
		return out, errors.New("the ID token has another nonce")
	case token.Subject == "" || len(token.Subject) > maxSubject:
		return out, errors.New("the ID token has no subject, or one that is too long")
	case out.AuthorizedParty != "" && out.AuthorizedParty != p.ClientID:
		return out, errors.New("the ID token was issued for another party")
	case out.AuthorizedParty == "" && slices.ContainsFunc(token.Audience, func(to string) bool {
		return to != p.ClientID
	}):
		return out, errors.New("the ID token has several audiences and no authorized party")
	case token.AccessTokenHash != "":
		return out, token.VerifyAccessToken(accessToken)
	}
	return out, nil
}

// userInfo asks the provider for the address of the person whom the ID token names.
func userInfo(ctx context.Context, found *oidc.Provider, tokens *oauth2.Token, subject string, into *claims) error {
	if found.UserInfoEndpoint() == "" {
		return nil
	}
	info, err := found.UserInfo(ctx, oauth2.StaticTokenSource(tokens))
	if err != nil {
		return fault.New(fault.Unavailable, "the identity provider does not answer").Because(err)
	}
	if info.Subject != subject {
		return unproved(fmt.Errorf("the user info is of another subject"))
	}
	raw := json.RawMessage{}
	if err := info.Claims(&raw); err != nil {
		return unproved(err)
	}
	var said claims
	if err := json.Unmarshal(raw, &said); err != nil {
		return unproved(err)
	}
	into.Email, into.Verified = said.Email, said.Verified
	return nil
}
