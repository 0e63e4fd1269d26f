package standin

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// Claims returns the claims of a good token for one request, for the suite to spoil.
func (p *Platform) Claims(audience, method, target string, body []byte, now int64) adapter.RequestClaims {
	return adapter.RequestClaims{
		Issuer: p.URL, Audience: audience, IssuedAt: now, Expires: now + int64(adapter.TokenLife.Seconds()),
		ID:     fmt.Sprintf("jti-%d-%s", now, adapter.BodyDigest([]byte(method+target))),
		Method: method, Target: target, BodyDigest: adapter.BodyDigest(body),
	}
}

// Sign returns a good token for one request.
func (p *Platform) Sign(audience, method, target string, body []byte) (string, error) {
	return p.signer.Sign(audience, method, target, body)
}

// SignClaims signs exactly these claims with the published key.
func (p *Platform) SignClaims(claims adapter.RequestClaims) (string, error) {
	return p.signer.SignClaims(claims)
}

// SignForeign signs with a key that is not published, under the id of the one that is, or under an
// id of its own.
func (p *Platform) SignForeign(claims adapter.RequestClaims, publishedID bool) (string, error) {
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return "", fmt.Errorf("foreign key: %w", err)
	}
	id := "conformance-foreign"
	if publishedID {
		id = p.kid
	}
	signer, err := adapter.NewSigner(p.URL, id, private)
	if err != nil {
		return "", err
	}
	return signer.SignClaims(claims)
}

// Unsigned returns a token of the algorithm "none": no signature at all.
func (p *Platform) Unsigned(claims adapter.RequestClaims) (string, error) {
	head, err := segments(map[string]string{"alg": "none", "typ": "JWT", "kid": p.kid}, claims)
	return head + ".", err
}

// SignSymmetric returns an HS256 token whose secret is the published public key: a verifier accepts
// it that believes the algorithm in the token's header.
func (p *Platform) SignSymmetric(claims adapter.RequestClaims) (string, error) {
	head, err := segments(map[string]string{"alg": "HS256", "typ": "JWT", "kid": p.kid}, claims)
	if err != nil {
		return "", err
	}
	mac := hmac.New(sha256.New, p.private.Public().(ed25519.PublicKey))
	mac.Write([]byte(head))
	return head + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)), nil
}

func segments(header map[string]string, claims adapter.RequestClaims) (string, error) {
	first, err := json.Marshal(header)
	if err != nil {
		return "", fmt.Errorf("token header: %w", err)
	}
	second, err := json.Marshal(claims)
	if err != nil {
		return "", fmt.Errorf("token claims: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(first) + "." + base64.RawURLEncoding.EncodeToString(second), nil
}
