package token

import (
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/gpuaas/app-platform/domain/fault"
)

// peerLife is how long a process of the platform may show a token to another one.
const peerLife = 30 * time.Second

// peerAudience and peerType distinguish a peer's token from every other that the platform signs.
const (
	peerAudience = "app-platform-peers"
	peerType     = "peer+jwt"
)

// SignPeer makes a token by which one process of the platform knows another: both hold the same signing keys.
func (r *Keyring) SignPeer(process string, now time.Time) (string, error) {
	return r.sign("a peer's token", peerType, jwt.Claims{
		Issuer: r.Issuer(), Audience: jwt.Audience{peerAudience}, Subject: process, IssuedAt: jwt.NewNumericDate(now),
		NotBefore: jwt.NewNumericDate(now.Add(-time.Minute)), Expiry: jwt.NewNumericDate(now.Add(peerLife)),
	})
}

// VerifyPeer returns the process that a peer's token names; UNAUTHENTICATED for any other text and when it has expired.
func (r *Keyring) VerifyPeer(text string, now time.Time) (process string, err error) {
	refused := fault.New(fault.Unauthenticated, "the token is not valid")
	if len(text) > MaxSigned {
		return "", refused
	}
	parsed, err := jwt.ParseSigned(text, []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil {
		return "", refused.Because(err)
	}
	var said registered
	if err := r.claims(parsed, peerType, &said); err != nil {
		return "", refused.Because(err)
	}
	if err := r.counts(said, peerAudience, now); err != nil || said.Expiry == nil || said.Subject == "" {
		return "", refused.Because(err)
	}
	return said.Subject, nil
}
