// Package signature reports whether an artifact is signed by a key that its source trusts. Keys alone count: no
// certificates, no log, no network but the registry that holds the artifact itself.
//
// Two forms are understood, both of them what `cosign sign` makes with a key: a bundle (a DSSE envelope around an
// in-toto statement) that is an OCI 1.1 referrer of the manifest, and the older payload under the tag `sha256-….sig`.
// Files have a bundle or a bare signature beside them. In each of them the digest inside the signed content is checked
// against the requested one: a good signature of something else counts for nothing. Package signing of the sdk creates
// signatures.
package signature

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/sdk/signing"
)

// The bounds of what is read of an artifact's signatures.
const (
	// MaxBytes bounds one manifest, bundle or payload.
	MaxBytes = 1 << 20
	// MaxSignatures bounds the referrers, layers, envelopes' signatures and statements' subjects that are read.
	MaxSignatures = 32
	// MaxReasons bounds the reasons why signatures do not count; each has at most some 200 characters.
	MaxReasons = 10
)

// ErrNotFound is a Registry's error for a manifest or a list of referrers that it does not have.
var ErrNotFound = errors.New("the registry does not have it")

// Key is a public key that a source trusts now.
type Key struct {
	// ID and Name are the key's in the catalog.
	ID   ids.ID
	Name string
	// Public is an *ecdsa.PublicKey on P-256 or an ed25519.PublicKey.
	Public crypto.PublicKey
	// Fingerprint is the SHA-256 of its PKIX DER, `sha256:…`.
	Fingerprint string
}

// Descriptor names something in a registry, as the registry itself lists it.
type Descriptor struct {
	Digest       string            `json:"digest"`
	MediaType    string            `json:"mediaType"`
	ArtifactType string            `json:"artifactType"`
	Size         int64             `json:"size"`
	Annotations  map[string]string `json:"annotations"`
}

// Registry is one repository of a registry, with the calls that signatures need. Its own failures end the check of an
// artifact; ErrNotFound does not.
type Registry interface {
	// Manifest returns a manifest's bytes, by its digest or a tag. The caller checks them against the digest.
	Manifest(ctx context.Context, reference string) (data []byte, mediaType string, err error)
	// Blob returns a blob's bytes: an error when it has more than limit. The caller checks them against the digest.
	Blob(ctx context.Context, digest string, limit int64) ([]byte, error)
	// Referrers lists the manifests that refer to a digest.
	Referrers(ctx context.Context, digest string) ([]Descriptor, error)
}

// Finding is what was found of an artifact's signatures.
type Finding struct {
	State lifecycle.SignatureState
	// Key is the trusted key that signed it; nil unless the state is VERIFIED.
	Key *Key
	// Reasons state why the signatures that do not count do not; at most MaxReasons + 1. Empty when VERIFIED.
	Reasons []string
}

// ParsePublicKey reads PEM of a PKIX public key, ECDSA P-256 or Ed25519. It returns the key, its fingerprint, and its
// algorithm as the catalog names it.
func ParsePublicKey(pem []byte) (key crypto.PublicKey, fingerprint, algorithm string, err error) {
	public, err := signing.ParsePublic(pem)
	return public.Key, public.Fingerprint, public.Algorithm, err
}

// look gathers what is found on the way through the signatures of one digest.
type look struct {
	digest string
	keys   []Key
	signed bool // whether there is a signature at all, good or bad
	key    *Key
	why    []string
}

// found is the finding so far.
func (l *look) found() Finding {
	switch {
	case l.key != nil:
		return Finding{State: lifecycle.SignatureVerified, Key: l.key}
	case len(l.keys) == 0:
		return Finding{State: lifecycle.SignatureNotChecked, Reasons: []string{"the source trusts no key"}}
	case l.signed:
		return Finding{State: lifecycle.SignatureUntrusted, Reasons: l.why}
	default:
		return Finding{State: lifecycle.SignatureMissing, Reasons: append([]string{"it has no signature"}, l.why...)}
	}
}

// against notes why a signature that is there does not count.
func (l *look) against(format string, args ...any) {
	l.signed = true
	l.remark(format, args...)
}

// remark notes something that is not a signature.
func (l *look) remark(format string, args ...any) {
	if len(l.why) < MaxReasons {
		l.why = append(l.why, fmt.Sprintf(format, args...))
	}
}

// beyond notes, before all other reasons, that more exists than is read: the rest may make the difference.
func (l *look) beyond(what string) {
	l.signed = true
	l.why = slices.Insert(l.why, 0, fmt.Sprintf("it has more than %d %s: the rest was not read", MaxSignatures, what))
	l.why = l.why[:min(len(l.why), MaxReasons)]
}

// signer returns the key whose signature over a message this is; nil when no trusted key fits.
func (l *look) signer(message, signature []byte) *Key {
	sum := sha256.Sum256(message)
	for i, key := range l.keys {
		good := false
		switch public := key.Public.(type) {
		case *ecdsa.PublicKey:
			good = ecdsa.VerifyASN1(public, sum[:], signature)
		case ed25519.PublicKey:
			good = len(public) == ed25519.PublicKeySize && ed25519.Verify(public, message, signature)
		}
		if good {
			return &l.keys[i]
		}
	}
	return nil
}

// shown is a piece of foreign text as a reason may hold it.
func shown(text string) string { return fmt.Sprintf("%.80q", text) }
