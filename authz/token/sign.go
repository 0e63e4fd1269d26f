package token

import (
	"fmt"
	"strings"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// sign signs the claims together as a token of a sort; what names it in an error.
func (r *Keyring) sign(what, sort string, claims ...any) (string, error) {
	private, kid := r.SigningKey()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA,
		Key: jose.JSONWebKey{Key: private, KeyID: kid}},
		(&jose.SignerOptions{}).WithType(jose.ContentType(sort)))
	if err != nil {
		return "", fmt.Errorf("sign %s: %w", what, err)
	}
	builder := jwt.Signed(signer)
	for _, part := range claims {
		builder = builder.Claims(part)
	}
	text, err := builder.Serialize()
	if err != nil {
		return "", fmt.Errorf("sign %s: %w", what, err)
	}
	return text, nil
}

// Seems reports whether a text says of itself that it is a credential of this platform. Nothing is verified.
func (r *Keyring) Seems(text string) bool {
	if strings.HasPrefix(text, "gpu_") {
		return true
	}
	if len(text) > MaxSigned {
		return false
	}
	parsed, err := jwt.ParseSigned(text, []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil {
		return false
	}
	var said registered
	return parsed.UnsafeClaimsWithoutVerification(&said) == nil && said.Issuer == r.issuer
}
