package evidence

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"

	"github.com/gpuaas/app-platform/domain/lifecycle"
)

// Statement returns the bytes that a runner signs: what sort of run it was, and the digest of the report's bytes, which
// name the suite, the adapter, its build and the app that was exercised.
func Statement(kind lifecycle.EvidenceKind, digest string) []byte {
	return []byte("gpuaas.app/evidence/v1\n" + string(kind) + "\n" + digest + "\n")
}

// PublicKey reads a runner's key: 32 bytes of Ed25519 in base64.
func PublicKey(text string) (ed25519.PublicKey, error) {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(raw) != ed25519.PublicKeySize {
		return nil, errors.New("must be an Ed25519 public key, 32 bytes in base64")
	}
	return raw, nil
}

// Signed reports whether the signature, in base64, is of the key over the statement.
func Signed(key ed25519.PublicKey, statement []byte, signature string) bool {
	raw, err := base64.StdEncoding.DecodeString(signature)
	return err == nil && ed25519.Verify(key, statement, raw)
}
