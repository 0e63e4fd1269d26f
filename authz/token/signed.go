package token

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
)

// Audience is what tokens for the public API are bound to.
const Audience = "app-platform-api"

// MaxSigned is the longest signed token that is looked at, in bytes.
const MaxSigned = 8 << 10

// Claims are what a signed token says: whom it speaks for and what it may do at most.
type Claims struct {
	// Operation is the operation it speaks for; empty for a token of a single call.
	Operation ids.ID `json:"op,omitempty"`
	// Instance is the instance it is confined to.
	Instance ids.ID `json:"ins,omitempty"`
	// Keys are the permission keys it holds at most.
	Keys []string `json:"keys"`
	// ID tells tokens of one subject apart.
	ID string `json:"-"`
	// ExpiresAt is when it ends.
	ExpiresAt time.Time `json:"-"`
}

// Keyring signs and verifies tokens. The first key signs, all are published and verify: a new key
// is put first, and the old one stays until its tokens have ended.
type Keyring struct {
	issuer string
	keys   []jose.JSONWebKey // private, first signs
	signer jose.Signer
}

// LoadKeyring reads every *.pem of a folder (PKCS#8-less raw seeds, newest name first) and makes a
// first key where there is none. issuer is the platform's public address.
func LoadKeyring(dir, issuer string) (*Keyring, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("signing keys: %w", err)
	}
	names, err := filepath.Glob(filepath.Join(dir, "*.pem"))
	if err != nil {
		return nil, fmt.Errorf("signing keys: %w", err)
	}
	if len(names) == 0 {
		name, err := makeKey(dir)
		if err != nil {
			return nil, err
		}
		names = []string{name}
	}
	ring := &Keyring{issuer: issuer}
	for i := len(names) - 1; i >= 0; i-- { // Glob sorts: the newest name signs
		key, err := readKey(names[i])
		if err != nil {
			return nil, err
		}
		ring.keys = append(ring.keys, key)
	}
	return ring, ring.prepare()
}

// NewKeyring makes a ring with one fresh key that is nowhere stored, for tests and tools.
func NewKeyring(issuer string) (*Keyring, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("signing key: %w", err)
	}
	ring := &Keyring{issuer: issuer, keys: []jose.JSONWebKey{webKey(private)}}
	return ring, ring.prepare()
}

// Issuer is the platform's public address, the `iss` of every token.
func (r *Keyring) Issuer() string { return r.issuer }

// SigningKey is the key that signs now, with its id.
func (r *Keyring) SigningKey() (ed25519.PrivateKey, string) {
	return r.keys[0].Key.(ed25519.PrivateKey), r.keys[0].KeyID
}

// Public is the published key set (RFC 7517) as JSON.
func (r *Keyring) Public() ([]byte, error) {
	var set jose.JSONWebKeySet
	for _, key := range r.keys {
		set.Keys = append(set.Keys, key.Public())
	}
	return json.Marshal(set)
}

// Sign makes a token that ends at claims.ExpiresAt.
func (r *Keyring) Sign(claims Claims, now time.Time) (string, error) {
	registered := jwt.Claims{
		Issuer: r.issuer, Audience: jwt.Audience{Audience}, ID: string(ids.New(ids.Session)),
		Subject:  string(subject(claims)),
		IssuedAt: jwt.NewNumericDate(now), NotBefore: jwt.NewNumericDate(now.Add(-time.Minute)),
		Expiry: jwt.NewNumericDate(claims.ExpiresAt),
	}
	text, err := jwt.Signed(r.signer).Claims(registered).Claims(claims).Serialize()
	if err != nil {
		return "", fmt.Errorf("sign a token: %w", err)
	}
	return text, nil
}

// Verify reads a token of this platform. UNAUTHENTICATED when it is malformed, signed by another
// key or in another way, or for another audience; TOKEN_EXPIRED when it is over.
func (r *Keyring) Verify(text string, now time.Time) (Claims, error) {
	refused := fault.New(fault.Unauthenticated, "the token is not valid")
	if len(text) > MaxSigned {
		return Claims{}, refused
	}
	parsed, err := jwt.ParseSigned(text, []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil {
		return Claims{}, refused.Because(err)
	}
	var registered jwt.Claims
	var claims Claims
	if err := r.claims(parsed, &registered, &claims); err != nil {
		return Claims{}, refused.Because(err)
	}
	expected := jwt.Expected{Issuer: r.issuer, AnyAudience: jwt.Audience{Audience}, Time: now}
	if err := registered.ValidateWithLeeway(expected, 0); errors.Is(err, jwt.ErrExpired) {
		return Claims{}, fault.New(fault.TokenExpired, "the token has expired").Because(err)
	} else if err != nil {
		return Claims{}, refused.Because(err)
	}
	if registered.Expiry == nil || registered.Subject != string(subject(claims)) {
		return Claims{}, refused
	}
	claims.ID, claims.ExpiresAt = registered.ID, registered.Expiry.Time()
	return claims, nil
}

// claims verifies the signature with the key that the token names.
func (r *Keyring) claims(parsed *jwt.JSONWebToken, into ...any) error {
	for _, key := range r.keys {
		if len(parsed.Headers) == 1 && parsed.Headers[0].KeyID == key.KeyID {
			return parsed.Claims(key.Public(), into...)
		}
	}
	return errors.New("signed by an unknown key")
}

func (r *Keyring) prepare() error {
	options := (&jose.SignerOptions{}).WithType("at+jwt")
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: r.keys[0]}, options)
	if err != nil {
		return fmt.Errorf("signing key: %w", err)
	}
	r.signer = signer
	return nil
}

func subject(claims Claims) ids.ID {
	if claims.Operation != "" {
		return claims.Operation
	}
	return claims.Instance
}

func makeKey(dir string) (string, error) {
	var seed [ed25519.SeedSize]byte
	_, _ = rand.Read(seed[:])
	name := filepath.Join(dir, time.Now().UTC().Format("20060102T150405")+".pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "ED25519 SEED", Bytes: seed[:]})
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", fmt.Errorf("signing keys: %w", err)
	}
	_, err = file.Write(block)
	if err := errors.Join(err, file.Close()); err != nil {
		return "", fmt.Errorf("signing keys: %w", err)
	}
	return name, nil
}

func readKey(name string) (jose.JSONWebKey, error) {
	content, err := os.ReadFile(name)
	if err != nil {
		return jose.JSONWebKey{}, fmt.Errorf("signing keys: %w", err)
	}
	block, _ := pem.Decode(content)
	if block == nil || block.Type != "ED25519 SEED" || len(block.Bytes) != ed25519.SeedSize {
		return jose.JSONWebKey{}, fmt.Errorf("signing keys: %s does not hold an Ed25519 seed", filepath.Base(name))
	}
	return webKey(ed25519.NewKeyFromSeed(block.Bytes)), nil
}

func webKey(private ed25519.PrivateKey) jose.JSONWebKey {
	public := private.Public().(ed25519.PublicKey)
	return jose.JSONWebKey{
		Key: private, Algorithm: string(jose.EdDSA), Use: "sig",
		KeyID: base64.RawURLEncoding.EncodeToString(hash(string(public))[:12]),
	}
}
