package sign

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
)

const (
	// TokenLife is how long a request token is valid.
	TokenLife = 60 * time.Second
	// clockSkew is how far the platform's and the adapter's clocks may differ.
	clockSkew = 30 * time.Second
	// MaxToken is the largest request token read, in bytes.
	MaxToken = 8 << 10
)

// RequestClaims are the claims of a request token. They bind it to one audience, method,
// path with query, and body, so that a token that leaks is of no use anywhere else.
type RequestClaims struct {
	// Issuer is the platform's URL.
	Issuer string `json:"iss"`
	// Audience is the adapter's registered name.
	Audience string `json:"aud"`
	// IssuedAt and Expires are seconds since 1970.
	IssuedAt int64 `json:"iat"`
	Expires  int64 `json:"exp"`
	// ID is unique to the token.
	ID string `json:"jti"`
	// Method is the request's method.
	Method string `json:"htm"`
	// Target is the request's path and query, exactly as sent.
	Target string `json:"htu"`
	// BodyDigest is the unpadded base64url of the SHA-256 of the body.
	BodyDigest string `json:"bd"`
}

// Signer issues request tokens: the platform's side of the signature.
type Signer struct {
	issuer string
	signer jose.Signer
	now    func() time.Time
}

// NewSigner returns a signer for the platform at issuer, with the key published under kid.
func NewSigner(issuer, kid string, key ed25519.PrivateKey) (*Signer, error) {
	if issuer == "" || kid == "" {
		return nil, errors.New("signer: issuer and kid must not be empty")
	}
	options := (&jose.SignerOptions{}).WithType("JWT").WithHeader("kid", kid)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: key}, options)
	if err != nil {
		return nil, fmt.Errorf("signer: %w", err)
	}
	return &Signer{issuer: issuer, signer: signer, now: time.Now}, nil
}

// Sign returns a token for one request: method, target (path and query) and body to audience.
func (s *Signer) Sign(audience, method, target string, body []byte) (string, error) {
	now := s.now()
	return s.SignClaims(RequestClaims{
		Issuer: s.issuer, Audience: audience, IssuedAt: now.Unix(), Expires: now.Add(TokenLife).Unix(),
		ID: rand.Text(), Method: method, Target: target, BodyDigest: BodyDigest(body),
	})
}

// SignClaims returns a token with exactly these claims. Conformance tests use it to make bad ones.
func (s *Signer) SignClaims(claims RequestClaims) (string, error) {
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", fmt.Errorf("sign request: %w", err)
	}
	signed, err := s.signer.Sign(payload)
	if err != nil {
		return "", fmt.Errorf("sign request: %w", err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		return "", fmt.Errorf("sign request: %w", err)
	}
	return token, nil
}

// SignRequest sets the Authorization header of a request whose body is body.
func (s *Signer) SignRequest(req *http.Request, audience string, body []byte) error {
	token, err := s.Sign(audience, req.Method, req.URL.RequestURI(), body)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	return nil
}

// BodyDigest returns the unpadded base64url of the SHA-256 of body; an absent body is empty.
func BodyDigest(body []byte) string {
	sum := sha256.Sum256(body)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// ErrSignature is what every refused request token wraps. Its text is safe to log, and names
// what did not match; the answer to the caller does not.
var ErrSignature = errors.New("request signature refused")

// KeySource finds the platform's public key by its id.
type KeySource interface {
	// Key returns the Ed25519 public key published under kid, or an error that says why not.
	Key(ctx context.Context, kid string) (ed25519.PublicKey, error)
}

// Verifier checks request tokens: the adapter's side of the signature.
//
// It keeps no list of used tokens on purpose. A token fits one request to one adapter for one
// minute; within it a repeat is what a client does after a broken connection, and every route
// answers a repeat as it answered the first.
type Verifier struct {
	// Issuer is the platform's URL, compared exactly.
	Issuer string
	// Audience is this adapter's registered name.
	Audience string
	// Keys is where the platform's keys come from.
	Keys KeySource
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Verify checks that the platform issued token for this adapter, method, target and body.
// Every refusal wraps [ErrSignature].
func (v *Verifier) Verify(ctx context.Context, token, method, target string, body []byte) error {
	claims, err := v.open(ctx, token)
	if err != nil {
		return err
	}
	return v.CheckClaims(claims, method, target, body)
}

func (v *Verifier) open(ctx context.Context, token string) (RequestClaims, error) {
	var claims RequestClaims
	if len(token) > MaxToken {
		return claims, refuse("token is longer than %d bytes", MaxToken)
	}
	// The allowed algorithm is named here, so "none" and HMAC with a public key cannot pass.
	parsed, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil {
		return claims, refuse("not a compact EdDSA JWT")
	}
	key, err := v.Keys.Key(ctx, parsed.Signatures[0].Protected.KeyID)
	if err != nil {
		return claims, refuse("key: %v", err)
	}
	payload, err := parsed.Verify(key)
	if err != nil {
		return claims, refuse("signature does not verify")
	}
	if err := json.Unmarshal(payload, &claims); err != nil {
		return claims, refuse("claims are not the contract's")
	}
	return claims, nil
}

// CheckClaims checks that the claims of a signed token are for this adapter, now, and for this request.
func (v *Verifier) CheckClaims(claims RequestClaims, method, target string, body []byte) error {
	now := time.Now()
	if v.Now != nil {
		now = v.Now()
	}
	switch {
	case claims.Issuer != v.Issuer:
		return refuse("iss is not %q", v.Issuer)
	case claims.Audience != v.Audience:
		return refuse("aud is not %q", v.Audience)
	case claims.ID == "":
		return refuse("jti is missing")
	case now.After(time.Unix(claims.Expires, 0).Add(clockSkew)):
		return refuse("token has expired")
	case now.Before(time.Unix(claims.IssuedAt, 0).Add(-clockSkew)):
		return refuse("token is issued in the future")
	case claims.Expires-claims.IssuedAt > int64(TokenLife/time.Second):
		return refuse("token lives longer than %s", TokenLife)
	case claims.Method != method:
		return refuse("htm does not match")
	case claims.Target != target:
		return refuse("htu does not match")
	case subtle.ConstantTimeCompare([]byte(claims.BodyDigest), []byte(BodyDigest(body))) != 1:
		return refuse("bd does not match the body")
	}
	return nil
}

// VerifyRequest checks the Authorization header of a request whose body has been read as body.
func (v *Verifier) VerifyRequest(req *http.Request, body []byte) error {
	claims, err := v.OpenRequest(req)
	if err != nil {
		return err
	}
	return v.CheckClaims(claims, req.Method, req.URL.RequestURI(), body)
}

// OpenRequest checks the signature of a request's token and returns its claims, before the body is read: strangers
// cannot make an adapter hold bodies. [Verifier.CheckClaims] must follow.
func (v *Verifier) OpenRequest(req *http.Request) (RequestClaims, error) {
	scheme, token, found := strings.Cut(req.Header.Get("Authorization"), " ")
	if !found || !strings.EqualFold(scheme, "bearer") {
		return RequestClaims{}, refuse("no bearer token")
	}
	return v.open(req.Context(), token)
}

func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrSignature, fmt.Sprintf(format, args...))
}
