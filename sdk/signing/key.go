package signing

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
)

// The algorithms of keys, as the platform names them.
const (
	// ECDSA is ECDSA on P-256 with SHA-256, as cosign's own keys.
	ECDSA = "ecdsa-p256"
	// Ed25519 is Ed25519.
	Ed25519 = "ed25519"
)

// maxPEM bounds a key's text, in bytes.
const maxPEM = 16 << 10

// Public is a public key with its algorithm and its fingerprint.
type Public struct {
	// Key is an *ecdsa.PublicKey on P-256 or an ed25519.PublicKey.
	Key crypto.PublicKey
	// Algorithm is ECDSA or Ed25519.
	Algorithm string
	// Fingerprint is the SHA-256 of the key's PKIX DER, `sha256:…`.
	Fingerprint string
	// Hint is the same sum in base64: bundles name their key by it.
	Hint string
}

// NewKey generates a private key of an algorithm, ECDSA when empty.
func NewKey(algorithm string) (crypto.Signer, error) {
	switch algorithm {
	case "", ECDSA:
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case Ed25519:
		_, key, err := ed25519.GenerateKey(rand.Reader)
		return key, err
	}
	return nil, fmt.Errorf("a key is %s or %s", ECDSA, Ed25519)
}

// EncodePrivate returns a private key as PEM of its PKCS #8 form, without a password: keep it as a secret.
func EncodePrivate(key crypto.Signer) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// ParsePrivate reads PEM of an ECDSA P-256 or Ed25519 private key, PKCS #8 or SEC 1. What it answers
// of a key that is not one never holds any of it.
func ParsePrivate(text []byte) (crypto.Signer, error) {
	block, err := onlyBlock(text)
	if err != nil {
		return nil, err
	}
	var key any
	switch block.Type {
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	case "ENCRYPTED PRIVATE KEY", "ENCRYPTED SIGSTORE PRIVATE KEY", "ENCRYPTED COSIGN PRIVATE KEY":
		return nil, errors.New("the key is encrypted: give it without a password, from your store of secrets")
	default:
		return nil, errors.New("the PEM is not a private key")
	}
	if err != nil {
		return nil, errors.New("the private key has an unsupported format")
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, errors.New("the key cannot sign")
	}
	_, err = Describe(signer.Public())
	return signer, err
}

// EncodePublic is a public key as PEM of its PKIX form.
func EncodePublic(key crypto.PublicKey) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), nil
}

// ParsePublic reads PEM of a PKIX public key: ECDSA P-256 or Ed25519, and nothing beside it.
func ParsePublic(text []byte) (Public, error) {
	block, err := onlyBlock(text)
	if err != nil {
		return Public{}, err
	}
	if block.Type != "PUBLIC KEY" {
		return Public{}, errors.New("the PEM is not a public key")
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return Public{}, errors.New("the PEM is not a PKIX public key")
	}
	return Describe(key)
}

// Describe returns a public key's algorithm and fingerprint; an error for any key but ECDSA P-256 and Ed25519.
func Describe(key crypto.PublicKey) (Public, error) {
	out := Public{Key: key}
	switch key := key.(type) {
	case *ecdsa.PublicKey:
		if key.Curve != elliptic.P256() {
			return Public{}, errors.New("an ECDSA key must be on the curve P-256")
		}
		out.Algorithm = ECDSA
	case ed25519.PublicKey:
		out.Algorithm = Ed25519
	default:
		return Public{}, errors.New("a key must be ECDSA P-256 or Ed25519")
	}
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return Public{}, err
	}
	sum := sha256.Sum256(der)
	out.Fingerprint, out.Hint = "sha256:"+hex.EncodeToString(sum[:]), base64.StdEncoding.EncodeToString(sum[:])
	return out, nil
}

// onlyBlock is the one PEM block of a text.
func onlyBlock(text []byte) (*pem.Block, error) {
	if len(text) > maxPEM {
		return nil, fmt.Errorf("a key has at most %d bytes", maxPEM)
	}
	block, rest := pem.Decode(text)
	if block == nil {
		return nil, errors.New("the key is not PEM")
	}
	if more, _ := pem.Decode(rest); more != nil {
		return nil, errors.New("the PEM contains more than one key")
	}
	return block, nil
}
