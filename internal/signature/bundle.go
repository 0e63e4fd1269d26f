package signature

import (
	"bytes"
	"crypto/ecdsa"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/sdk/signing"
)

// envelopeTypes are the statements that are understood; the older one differs in nothing that is read here.
var envelopeTypes = []string{signing.Statement, "https://in-toto.io/Statement/v0.1"}

// bundle checks one bundle.
func (l *look) bundle(data []byte) {
	var parsed signing.Bundle
	if err := json.Unmarshal(data, &parsed); err != nil {
		l.against("a bundle is malformed: it is not a bundle in JSON")
		return
	}
	switch {
	case !strings.HasPrefix(parsed.MediaType, "application/vnd.dev.sigstore.bundle"):
		l.against("a bundle is malformed: its media type is %s", shown(parsed.MediaType))
	case parsed.Envelope != nil && parsed.Message == nil:
		l.envelope(parsed)
	case parsed.Message != nil && parsed.Envelope == nil:
		l.message(parsed)
	default:
		l.against("a bundle is malformed: it holds neither an envelope nor a signature, or both")
	}
}

// envelope checks a bundle around a statement.
func (l *look) envelope(bundle signing.Bundle) {
	envelope := bundle.Envelope
	if envelope.PayloadType != signing.StatementType || len(envelope.Signatures) == 0 ||
		len(envelope.Signatures) > MaxSignatures {
		l.against("a bundle is malformed: its envelope holds %s with %d signatures", shown(envelope.PayloadType),
			len(envelope.Signatures))
		return
	}
	var statement signing.InToto
	if err := json.Unmarshal(envelope.Payload, &statement); err != nil ||
		!slices.Contains(envelopeTypes, statement.Type) {
		l.against("a bundle is malformed: its payload is not an in-toto statement")
		return
	}
	if statement.PredicateType != signing.PredicateType {
		l.remark("a statement of type %s is not a signature", shown(statement.PredicateType))
		return
	}
	encoded := signing.PAE(envelope.PayloadType, envelope.Payload)
	for _, signature := range envelope.Signatures {
		key := l.signer(encoded, signature.Sig)
		switch {
		case key == nil:
			l.unknown(hint(bundle))
		case !about(statement, l.digest):
			l.against("the signature by %s is of another digest: %s", shown(key.Name), others(statement))
		default:
			l.signed, l.key = true, key
			return
		}
	}
}

// about reports whether a statement is about a digest.
func about(statement signing.InToto, digest string) bool {
	sum := strings.TrimPrefix(digest, "sha256:")
	return len(statement.Subject) <= MaxSignatures &&
		slices.ContainsFunc(statement.Subject, func(one signing.Resource) bool {
			return one.Digest["sha256"] == sum
		})
}

// others returns the first digest that a statement is about.
func others(statement signing.InToto) string {
	if len(statement.Subject) == 0 {
		return "it names none"
	}
	return shown("sha256:" + statement.Subject[0].Digest["sha256"])
}

// message checks a bundle around a bare signature over a file's digest.
func (l *look) message(bundle signing.Bundle) {
	message := bundle.Message
	if message.Digest.Algorithm != "SHA2_256" {
		l.against("a bundle is malformed: its digest is %s and must be SHA2_256", shown(message.Digest.Algorithm))
		return
	}
	if digest := "sha256:" + hex.EncodeToString(message.Digest.Digest); digest != l.digest {
		l.against("a signature is of another digest: %s", shown(digest))
		return
	}
	l.bare(message.Signature, hint(bundle))
}

// bare checks a signature over a file's digest. Ed25519 signs whole files, so that a digest cannot verify it.
func (l *look) bare(signature []byte, hint string) {
	sum, err := hex.DecodeString(strings.TrimPrefix(l.digest, "sha256:"))
	if err != nil {
		l.against("the digest is malformed")
		return
	}
	for i, key := range l.keys {
		if public, ok := key.Public.(*ecdsa.PublicKey); ok && ecdsa.VerifyASN1(public, sum, signature) {
			l.signed, l.key = true, &l.keys[i]
			return
		}
	}
	l.unknown(hint)
}

// unknown notes a signature that no trusted key verifies for the content that it is attached to.
func (l *look) unknown(hint string) {
	for _, key := range l.keys {
		if hint != "" && hint == key.Fingerprint {
			l.against("a signature names %s as its signer and is not by it: it was tampered with", shown(key.Name))
			return
		}
	}
	if hint == "" {
		l.against("a signature is by a key that the source does not trust")
		return
	}
	l.against("a signature is by a key that the source does not trust, %s", shown(hint))
}

// hint returns the fingerprint of the key that a bundle names; empty when it names none. It proves nothing and is for
// reasons alone.
func hint(bundle signing.Bundle) string {
	if bundle.Material.PublicKey == nil {
		return ""
	}
	raw, err := decodeBase64([]byte(bundle.Material.PublicKey.Hint))
	if err != nil || len(raw) != 32 {
		return ""
	}
	return "sha256:" + hex.EncodeToString(raw)
}

// payload checks one signature of the older form.
func (l *look) payload(data []byte, encoded string) {
	signature, err := decodeBase64([]byte(encoded))
	if err != nil || len(signature) == 0 {
		l.against("a signature is malformed: it is not base64")
		return
	}
	key := l.signer(data, signature)
	if key == nil {
		l.unknown("")
		return
	}
	var parsed signing.Payload
	switch err := json.Unmarshal(data, &parsed); {
	case err != nil || parsed.Critical.Type != signing.PayloadKind:
		l.against("the payload signed by %s is malformed: it is not a signature of an image", shown(key.Name))
	case parsed.Critical.Image.Digest != l.digest:
		l.against("the signature by %s is of another digest: %s", shown(key.Name), shown(parsed.Critical.Image.Digest))
	default:
		l.signed, l.key = true, key
	}
}

// Blob reports what the bundle and the bare signature beside a file state about its digest; each is nil when it does
// not exist.
func Blob(bundle, detached []byte, digest string, keys []Key) (Finding, error) {
	if _, err := signing.Sum(digest); err != nil {
		return Finding{}, err
	}
	l := &look{digest: digest, keys: keys}
	if len(keys) == 0 {
		return l.found(), nil
	}
	switch {
	case len(bundle) > MaxBytes:
		l.against("the bundle has more than %d bytes", MaxBytes)
	case bundle != nil:
		l.bundle(bundle)
	}
	switch {
	case l.key != nil || detached == nil:
	case len(detached) > MaxBytes:
		l.against("the signature has more than %d bytes", MaxBytes)
	default:
		l.detached(detached)
	}
	return l.found(), nil
}

// detached checks a bare signature, base64 or as it is.
func (l *look) detached(text []byte) {
	signature, err := decodeBase64(bytes.TrimSpace(text))
	if err != nil {
		signature = text
	}
	l.bare(signature, "")
}
