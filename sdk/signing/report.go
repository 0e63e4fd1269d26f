package signing

import (
	"crypto"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
)

// ReportStatement returns the bytes that a runner signs of a report of this kind, "CONFORMANCE" or "TENANCY": the kind,
// and the digest of the report's bytes, which name the suite, the adapter, its build and the app that was exercised.
func ReportStatement(kind string, report []byte) []byte {
	sum := sha256.Sum256(report)
	return []byte("gpuaas.app/evidence/v1\n" + kind + "\nsha256:" + hex.EncodeToString(sum[:]) + "\n")
}

// SignReport returns a runner's signature of a report in base64, as submitEvidence takes it. The key must be an Ed25519
// one.
func SignReport(key crypto.Signer, kind string, report []byte) (string, error) {
	private, ok := key.(ed25519.PrivateKey)
	if !ok {
		return "", errors.New("a runner's key must be an Ed25519 key")
	}
	return base64.StdEncoding.EncodeToString(ed25519.Sign(private, ReportStatement(kind, report))), nil
}

// RunnerKey returns a runner's public key in base64, as registerRunner takes it. The key must be an Ed25519 one.
func RunnerKey(key crypto.PublicKey) (string, error) {
	public, ok := key.(ed25519.PublicKey)
	if !ok {
		return "", errors.New("a runner's key must be an Ed25519 key")
	}
	return base64.StdEncoding.EncodeToString(public), nil
}
