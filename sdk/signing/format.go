package signing

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// Bundle is a signature with what is needed to check it: an envelope for what lies in a registry, a bare signature over
// a digest for a file.
type Bundle struct {
	MediaType string            `json:"mediaType"`
	Material  Material          `json:"verificationMaterial"`
	Envelope  *Envelope         `json:"dsseEnvelope,omitempty"`
	Message   *MessageSignature `json:"messageSignature,omitempty"`
}

// Material names the key; nothing more is in it, as neither certificates nor a log are used.
type Material struct {
	PublicKey *struct {
		Hint string `json:"hint"`
	} `json:"publicKey,omitempty"`
}

// Envelope is a DSSE envelope: each signature is over PAE of the payload.
type Envelope struct {
	Payload     []byte              `json:"payload"`
	PayloadType string              `json:"payloadType"`
	Signatures  []EnvelopeSignature `json:"signatures"`
}

// EnvelopeSignature is one signature of an envelope.
type EnvelopeSignature struct {
	Sig   []byte `json:"sig"`
	KeyID string `json:"keyid,omitempty"`
}

// MessageSignature is a signature over the SHA-256 of a file.
type MessageSignature struct {
	Digest struct {
		Algorithm string `json:"algorithm"`
		Digest    []byte `json:"digest"`
	} `json:"messageDigest"`
	Signature []byte `json:"signature"`
}

// InToto is a statement: that what has these digests is signed.
type InToto struct {
	Type          string         `json:"_type"`
	Subject       []Resource     `json:"subject"`
	PredicateType string         `json:"predicateType"`
	Predicate     map[string]any `json:"predicate"`
}

// Resource is something that a statement is about.
type Resource struct {
	Name   string            `json:"name,omitempty"`
	Digest map[string]string `json:"digest"`
}

// Payload is what the older form signs.
type Payload struct {
	Critical Critical       `json:"critical"`
	Optional map[string]any `json:"optional"`
}

// Critical is the part of a payload that is to be checked.
type Critical struct {
	Identity struct {
		Reference string `json:"docker-reference"`
	} `json:"identity"`
	Image struct {
		Digest string `json:"docker-manifest-digest"`
	} `json:"image"`
	Type string `json:"type"`
}

// PAE is the pre-authentication encoding: the bytes that an envelope's signatures are over.
func PAE(payloadType string, payload []byte) []byte {
	return fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(payloadType), payloadType, len(payload), payload)
}

// Sum returns the hexadecimal part of a digest `sha256:…`; an error when the digest does not have this form.
func Sum(digest string) (string, error) {
	sum, ok := strings.CutPrefix(digest, "sha256:")
	raw, err := hex.DecodeString(sum)
	if !ok || err != nil || len(raw) != sha256.Size || strings.ToLower(sum) != sum {
		return "", errors.New("a digest is sha256: and 64 lower-case hexadecimal digits")
	}
	return sum, nil
}

// sign signs a message with a key: over its SHA-256 by ECDSA, over itself by Ed25519.
func sign(key crypto.Signer, message []byte) ([]byte, error) {
	if _, ok := key.Public().(ed25519.PublicKey); ok {
		return key.Sign(rand.Reader, message, crypto.Hash(0))
	}
	sum := sha256.Sum256(message)
	return key.Sign(rand.Reader, sum[:], crypto.SHA256)
}
