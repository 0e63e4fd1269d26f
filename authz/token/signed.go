package token

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
)

// Audience is what tokens for the public API are bound to.
const Audience = "app-platform-api"

// tokenType is the `typ` of every token for the API: it distinguishes it from what else a key may sign.
const tokenType = "at+jwt"

// MaxSigned is the longest signed token that is read, in bytes.
const MaxSigned = 8 << 10

// Claims are what a signed token says: whom it speaks for and what it may do at most.
type Claims struct {
	// Operation is the operation it speaks for; empty for a token of a single call.
	Operation ids.ID `json:"op,omitempty"`
	// Instance is the instance it is confined to.
	Instance ids.ID `json:"ins,omitempty"`
	// ServiceKey is the key of a service account that it was exchanged for. Nothing else is set then but Keys, or what
	// Operator needs.
	ServiceKey ids.ID `json:"sak,omitempty"`
	// Operator is the service account that it speaks for, on Instance alone. ServiceKey is then the key by which the
	// adapter requested the token.
	Operator ids.ID `json:"opr,omitempty"`
	// Keys are the permission keys it holds at most; none in an exchanged token for all that its account has.
	Keys []string `json:"keys"`
	// Act is who requested what the token is used for; nil when no one did.
	Act *Requester `json:"act,omitempty"`
	// Trace is the trace in which the token was issued, 32 hexadecimal digits: a request with it that continues this
	// trace belongs to it. Empty where nothing was traced.
	Trace string `json:"trc,omitempty"`
	// ID distinguishes tokens of one subject.
	ID string `json:"-"`
	// ExpiresAt is when it ends.
	ExpiresAt time.Time `json:"-"`
}

// Requester is who requested what a token is used for.
type Requester struct {
	// Subject is the requester's id, and Kind what sort of subject it is.
	Subject string `json:"sub"`
	Kind    string `json:"kind"`
	// Name is what to call it, at most 100 bytes.
	Name string `json:"name,omitempty"`
}

// Sign makes a token that ends at claims.ExpiresAt.
func (r *Keyring) Sign(claims Claims, now time.Time) (string, error) {
	registered := jwt.Claims{
		Issuer: r.issuer, Audience: jwt.Audience{Audience}, ID: string(ids.New(ids.Session)),
		Subject:  string(subject(claims)),
		IssuedAt: jwt.NewNumericDate(now), NotBefore: jwt.NewNumericDate(now.Add(-time.Minute)),
		Expiry: jwt.NewNumericDate(claims.ExpiresAt),
	}
	text, err := jwt.Signed(r.set().signer).Claims(registered).Claims(claims).Serialize()
	if err != nil {
		return "", fmt.Errorf("sign a token: %w", err)
	}
	return text, nil
}

// registered are the claims that every token of the world may hold.
type registered = jwt.Claims

// payload is all that a token says, decoded in one go: decoding is half of what a verification costs.
type payload struct {
	registered
	Claims
}

// said returns the claims of a token with a valid signature. It remembers the texts that it verified.
func (r *Keyring) said(text string) (payload, error) {
	sum := sha256.Sum256([]byte(text))
	if known, ok := r.seen.recall(sum); ok && r.publishes(known.keyID) {
		known.said.Keys = slices.Clone(known.said.Keys)
		return known.said, nil
	}
	parsed, err := jwt.ParseSigned(text, []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil {
		return payload{}, err
	}
	var said payload
	if err := r.claims(parsed, tokenType, &said); err != nil {
		return payload{}, err
	}
	r.seen.remember(sum, sighting[payload]{said: said, keyID: parsed.Headers[0].KeyID})
	said.Keys = slices.Clone(said.Keys)
	return said, nil
}

// publishes reports whether the ring holds the key, and so whether what it signed counts.
func (r *Keyring) publishes(keyID string) bool {
	return slices.ContainsFunc(r.set().keys, func(key ringKey) bool { return key.KeyID == keyID })
}

// Verify reads a token of this platform. UNAUTHENTICATED when it is malformed, signed by another
// key or in another way, or for another audience; TOKEN_EXPIRED when it is over.
func (r *Keyring) Verify(text string, now time.Time) (Claims, error) {
	refused := fault.New(fault.Unauthenticated, "the token is not valid")
	if len(text) > MaxSigned {
		return Claims{}, refused
	}
	said, err := r.said(text)
	if err != nil {
		return Claims{}, refused.Because(err)
	}
	registered, claims := said.registered, said.Claims
	if err := r.counts(registered, Audience, now); errors.Is(err, jwt.ErrExpired) {
		return Claims{}, fault.New(fault.TokenExpired, "the token has expired").Because(err)
	} else if err != nil {
		return Claims{}, refused.Because(err)
	}
	if registered.Expiry == nil || registered.Subject == "" || registered.Subject != string(subject(claims)) {
		return Claims{}, refused
	}
	claims.ID, claims.ExpiresAt = registered.ID, registered.Expiry.Time()
	return claims, nil
}

// counts checks the issuer, the audience and the time of a token, to the moment. A token may be verified up to a minute
// before it was issued, which its NotBefore says: the clock of the process that verifies it may be behind.
func (r *Keyring) counts(said registered, audience string, now time.Time) error {
	said.IssuedAt = nil
	return said.ValidateWithLeeway(jwt.Expected{Issuer: r.issuer, AnyAudience: jwt.Audience{audience}, Time: now}, 0)
}

// claims verifies the signature of a token of one sort with the key that the token names.
func (r *Keyring) claims(parsed *jwt.JSONWebToken, sort string, into ...any) error {
	if len(parsed.Headers) != 1 {
		return errors.New("signed more than once")
	}
	if typ, _ := parsed.Headers[0].ExtraHeaders[jose.HeaderType].(string); typ != sort {
		return errors.New("a token of another sort")
	}
	for _, key := range r.set().keys {
		if parsed.Headers[0].KeyID == key.KeyID {
			return parsed.Claims(key.Public(), into...)
		}
	}
	return errors.New("signed by an unknown key")
}

// subject is what a token speaks for; none when it would speak for two things at once, or for a row of another
// kind than its claim's.
func subject(claims Claims) ids.ID {
	switch {
	case claims.Operator != "":
		if claims.Operation == "" && claims.Operator.Is(ids.ServiceAccount) && claims.Instance.Is(ids.Instance) &&
			claims.ServiceKey.Is(ids.ServiceKey) {
			return claims.Operator
		}
		return ""
	case claims.ServiceKey != "":
		if claims.Operation == "" && claims.Instance == "" && claims.ServiceKey.Is(ids.ServiceKey) {
			return claims.ServiceKey
		}
		return ""
	case claims.Operation != "":
		return claims.Operation
	}
	return claims.Instance
}
