package signature_test

import (
	"bytes"
	"crypto"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/signature"
	"github.com/gpuaas/app-platform/sdk/signing"
)

const (
	verified  = lifecycle.SignatureVerified
	untrusted = lifecycle.SignatureUntrusted
	missing   = lifecycle.SignatureMissing
)

// resign changes the statement of a bundle and signs it again: everything except for the statement is as it should be.
func resign(by crypto.Signer, change func(*signing.InToto)) func(*testing.T, *signing.Bundle) {
	return func(t *testing.T, bundle *signing.Bundle) {
		var statement signing.InToto
		require.NoError(t, json.Unmarshal(bundle.Envelope.Payload, &statement))
		change(&statement)
		payload, err := json.Marshal(statement)
		require.NoError(t, err)
		bundle.Envelope.Payload, bundle.Envelope.Signatures[0].Sig = payload,
			signed(t, by, signing.PAE(signing.StatementType, payload))
	}
}

func signed(t *testing.T, by crypto.Signer, message []byte) []byte {
	t.Helper()
	sum := sha256.Sum256(message)
	made, err := by.Sign(nil, sum[:], crypto.SHA256)
	require.NoError(t, err)
	return made
}

// tampered is a bundle that was changed after it was signed, and the check's answer to it.
type tampered struct {
	bundle func(*testing.T, *signing.Bundle)
	state  lifecycle.SignatureState
	says   string
}

func TestATamperedBundleCountsForNothing(t *testing.T) {
	t.Parallel()
	digest := digestOf([]byte("manifest"))
	private, key := newKey(t, signing.ECDSA, "publisher")
	stranger, _ := newKey(t, signing.ECDSA, "stranger")
	plain := func(change func(*signing.Bundle)) func(*testing.T, *signing.Bundle) {
		return func(_ *testing.T, b *signing.Bundle) { change(b) }
	}
	for name, test := range map[string]tampered{
		"nothing changed": {plain(func(*signing.Bundle) {}), verified, ""},
		"signed anew":     {resign(private, func(*signing.InToto) {}), verified, ""},
		"a byte of the payload": {plain(func(b *signing.Bundle) {
			b.Envelope.Payload = bytes.Replace(b.Envelope.Payload, []byte(`"predicate":{}`),
				[]byte(`"predicate": {}`), 1)
		}), untrusted, "tampered"},
		"a byte of the signature": {plain(func(b *signing.Bundle) { b.Envelope.Signatures[0].Sig[20] ^= 1 }), untrusted,
			"tampered"},
		"no hint and no signature": {plain(func(b *signing.Bundle) {
			b.Material.PublicKey, b.Envelope.Signatures[0].Sig = nil, []byte("x")
		}), untrusted, "does not trust"},
		"another's key": {resign(stranger, func(*signing.InToto) {}), untrusted, "tampered"},
		"another digest, well signed": {resign(private, func(s *signing.InToto) {
			s.Subject[0].Digest["sha256"] = strings.Repeat("0", 64)
		}), untrusted, "of another digest"},
		"no subject, well signed": {resign(private, func(s *signing.InToto) { s.Subject = nil }), untrusted,
			"it names none"},
		"a sum of another kind, well signed": {resign(private, func(s *signing.InToto) {
			s.Subject[0].Digest = map[string]string{"sha512": s.Subject[0].Digest["sha256"]}
		}), untrusted, "of another digest"},
		"too many subjects, well signed": {resign(private, func(s *signing.InToto) {
			for range signature.MaxSignatures {
				s.Subject = append(s.Subject, s.Subject[0])
			}
		}), untrusted, "of another digest"},
		"another claim, well signed": {resign(private, func(s *signing.InToto) {
			s.PredicateType = "https://slsa.dev/provenance/v1"
		}), missing, "is not a signature"},
		"no statement, well signed": {resign(private, func(s *signing.InToto) { s.Type = "https://example.com/x" }),
			untrusted, "not an in-toto statement"},
		"another payload type": {plain(func(b *signing.Bundle) { b.Envelope.PayloadType = "text/plain" }), untrusted,
			"malformed"},
		"no signatures": {plain(func(b *signing.Bundle) { b.Envelope.Signatures = nil }), untrusted,
			"malformed"},
		"too many signatures": {plain(func(b *signing.Bundle) {
			b.Envelope.Signatures = make([]signing.EnvelopeSignature, signature.MaxSignatures+1)
		}), untrusted, "malformed"},
		"another media type": {plain(func(b *signing.Bundle) { b.MediaType = "application/json" }), untrusted,
			"media type"},
		"neither form": {plain(func(b *signing.Bundle) { b.Envelope = nil }), untrusted, "neither"},
		"both forms": {plain(func(b *signing.Bundle) { b.Message = &signing.MessageSignature{} }), untrusted,
			"or both"},
		"a file's form of another digest": {plain(func(b *signing.Bundle) {
			b.Envelope, b.Message = nil, &signing.MessageSignature{}
			b.Message.Digest.Algorithm = "SHA2_256"
		}), untrusted, "of another digest"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made, err := signing.Image(signing.Descriptor{MediaType: signing.ManifestType, Digest: digest,
				Size: 8}, private)
			require.NoError(t, err)
			var bundle signing.Bundle
			require.NoError(t, json.Unmarshal(made.Blobs[1], &bundle))
			test.bundle(t, &bundle)
			encoded, err := json.Marshal(bundle)
			require.NoError(t, err)
			made.Manifest = bytes.ReplaceAll(made.Manifest, []byte(digestOf(made.Blobs[1])), []byte(digestOf(encoded)))
			made.Manifest = bytes.ReplaceAll(made.Manifest, fmt.Appendf(nil, `"size":%d`, len(made.Blobs[1])),
				fmt.Appendf(nil, `"size":%d`, len(encoded)))
			made.Blobs[1] = encoded
			registry := newShelf()
			registry.add(t, made, nil)
			finds(t, registry, digest, key, test.state, test.says)
		})
	}
}

// finds looks at a digest and compares what is found.
func finds(t *testing.T, registry *shelf, digest string, key signature.Key, state lifecycle.SignatureState,
	says string) {
	t.Helper()
	found, err := signature.Image(t.Context(), registry, digest, []signature.Key{key})
	require.NoError(t, err)
	require.Equal(t, state, found.State, "%v", found.Reasons)
	require.Contains(t, strings.Join(found.Reasons, "; "), says)
	require.Equal(t, state == verified, found.Key != nil)
	require.Equal(t, state == verified, len(found.Reasons) == 0)
	require.LessOrEqual(t, len(found.Reasons), signature.MaxReasons+1)
}

func TestARegistryThatGivesOtherThanItListsIsNotBelieved(t *testing.T) {
	t.Parallel()
	digest := digestOf([]byte("manifest"))
	private, key := newKey(t, signing.ECDSA, "publisher")
	for name, test := range map[string]struct {
		change func(*shelf)
		state  lifecycle.SignatureState
		says   string
	}{
		"a layer that is away": {func(s *shelf) { clear(s.blobs) }, untrusted, "does not exist"},
		"a layer with other bytes": {func(s *shelf) {
			for digest := range s.blobs {
				s.blobs[digest] = []byte(`{"mediaType":"x"}`)
			}
		}, untrusted, "other bytes"},
		"a manifest with other bytes": {func(s *shelf) { s.manifests[s.referrers[0].Digest] = []byte(`{"layers":[]}`) },
			untrusted, "malformed"},
		"a manifest that is away": {func(s *shelf) { clear(s.manifests) }, missing, "listed and does not exist"},
		"a digest that is none":   {func(s *shelf) { s.referrers[0].Digest = "../../v2" }, missing, "no signature"},
		"nothing at all":          {func(s *shelf) { *s = *newShelf() }, missing, "no signature"},
		"signatures of others first": {func(s *shelf) {
			for i := range signature.MaxSignatures + 1 {
				s.referrers = append([]signature.Descriptor{{Digest: digestOf([]byte{byte(i)}),
					ArtifactType: signing.BundleType}},
					s.referrers...)
			}
		}, untrusted, "more than 32 referrers"},
		"an index tag with garbage": {func(s *shelf) {
			*s = *newShelf()
			s.manifests["sha256-"+strings.TrimPrefix(digest, "sha256:")] = []byte("garbage")
		}, missing, "no signature"},
	} {
		registry := newShelf()
		made, err := signing.Image(signing.Descriptor{MediaType: signing.ManifestType, Digest: digest,
			Size: 8}, private)
		registry.add(t, made, err)
		test.change(registry)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			finds(t, registry, digest, key, test.state, test.says)
		})
	}
	away := newShelf()
	away.broken = errors.New("the registry is away")
	_, err := signature.Image(t.Context(), away, digest, []signature.Key{key})
	require.ErrorIs(t, err, away.broken, "a registry that is away says nothing of a signature")
	_, err = signature.Image(t.Context(), newShelf(), "sha256:zz", []signature.Key{key})
	require.Error(t, err)
	unasked, err := signature.Image(t.Context(), away, digest, nil)
	require.NoError(t, err)
	require.Equal(t, lifecycle.SignatureNotChecked, unasked.State)
	require.Equal(t, []string{"the source trusts no key"}, unasked.Reasons)
}

func TestATamperedPayloadOfTheOlderFormCountsForNothing(t *testing.T) {
	t.Parallel()
	digest := digestOf([]byte("manifest"))
	tag := "sha256-" + strings.TrimPrefix(digest, "sha256:") + ".sig"
	private, key := newKey(t, signing.ECDSA, "publisher")
	stranger, _ := newKey(t, signing.ECDSA, "stranger")
	good := fmt.Sprintf(
		`{"critical":{"identity":{"docker-reference":""},"image":{"docker-manifest-digest":%q},"type":"cosign container image signature"},"optional":null}`, digest)
	layer := func(payload string, annotations map[string]string, size int) signing.Descriptor {
		return signing.Descriptor{MediaType: signing.PayloadType, Digest: digestOf([]byte(payload)), Size: int64(size),
			Annotations: annotations}
	}
	by := func(who crypto.Signer, payload string) map[string]string {
		return map[string]string{signing.SignatureAnnotation: base64.StdEncoding.EncodeToString(signed(t, who,
			[]byte(payload)))}
	}
	for name, test := range map[string]struct {
		payload string
		layer   signing.Descriptor
		state   lifecycle.SignatureState
		says    string
	}{
		"as it should be": {good, layer(good, by(private, good), len(good)), verified, ""},
		"another's key":   {good, layer(good, by(stranger, good), len(good)), untrusted, "does not trust"},
		"no signature":    {good, layer(good, nil, len(good)), untrusted, "not base64"},
		"garbage for a signature": {good, layer(good, map[string]string{signing.SignatureAnnotation: "%"}, len(good)),
			untrusted, "not base64"},
		"signed something else": {good, layer(good, by(private, good+" "), len(good)), untrusted, "does not trust"},
		"too large":             {good, layer(good, by(private, good), signature.MaxBytes+1), untrusted, "more than"},
		"another media type": {good, signing.Descriptor{MediaType: "text/plain", Digest: digestOf([]byte(good))},
			untrusted, "text/plain"},
	} {
		registry := newShelf()
		manifest, err := json.Marshal(map[string]any{"layers": []signing.Descriptor{test.layer}})
		require.NoError(t, err)
		registry.manifests[tag], registry.blobs[digestOf([]byte(test.payload))] = manifest, []byte(test.payload)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			finds(t, registry, digest, key, test.state, test.says)
		})
	}
	for name, payload := range map[string]string{
		"of another digest: \"sha256:1":    strings.Replace(good, digest, "sha256:1", 1),
		"is not a signature of an image":   strings.Replace(good, "cosign container image signature", "receipt", 1),
		"malformed: it is not a signature": "[]",
	} {
		registry := newShelf()
		manifest, err := json.Marshal(map[string]any{"layers": []signing.Descriptor{layer(payload, by(private, payload),
			len(payload))}})
		require.NoError(t, err)
		registry.manifests[tag], registry.blobs[digestOf([]byte(payload))] = manifest, []byte(payload)
		finds(t, registry, digest, key, untrusted, name)
	}
	empty := newShelf()
	empty.manifests[tag] = []byte(`{"layers":[]}`)
	finds(t, empty, digest, key, untrusted, "the signature's tag is malformed")
}

func TestAFilesSignatureIsOfItsDigestAndByATrustedKey(t *testing.T) {
	t.Parallel()
	digest, other := digestOf([]byte("one")), digestOf([]byte("other"))
	private, key := newKey(t, signing.ECDSA, "publisher")
	edwards, edwardsKey := newKey(t, signing.Ed25519, "edwards")
	stranger, _ := newKey(t, signing.ECDSA, "stranger")
	made := func(data []byte, err error) []byte {
		require.NoError(t, err)
		return data
	}
	for name, test := range map[string]struct {
		bundle, detached []byte
		state            lifecycle.SignatureState
		says             string
	}{
		"bundle":               {made(signing.Blob(digest, private)), nil, verified, ""},
		"statement":            {made(signing.Blob(digest, edwards)), nil, verified, ""},
		"bare":                 {nil, made(signing.DetachedBlob(digest, private)), verified, ""},
		"neither":              {nil, nil, missing, "no signature"},
		"bundle of another":    {made(signing.Blob(other, private)), nil, untrusted, "of another digest"},
		"statement of another": {made(signing.Blob(other, edwards)), nil, untrusted, "of another digest"},
		"bare of another":      {nil, made(signing.DetachedBlob(other, private)), untrusted, "does not trust"},
		"bundle by a stranger": {made(signing.Blob(digest, stranger)), nil, untrusted, "does not trust"},
		"bare by a stranger":   {nil, made(signing.DetachedBlob(digest, stranger)), untrusted, "does not trust"},
		"garbage":              {[]byte("garbage"), []byte("garbage"), untrusted, "malformed"},
		"endless bundle":       {make([]byte, signature.MaxBytes+1), nil, untrusted, "more than"},
		"endless signature":    {nil, make([]byte, signature.MaxBytes+1), untrusted, "more than"},
		"empty files":          {[]byte{}, []byte{}, untrusted, "malformed"},
		"another's sum in the shape": {bytes.Replace(made(signing.Blob(digest, private)), []byte("SHA2_256"),
			[]byte("SHA2_512"), 1), nil, untrusted, "SHA2_256"},
	} {
		found, err := signature.Blob(test.bundle, test.detached, digest, []signature.Key{edwardsKey, key})
		require.NoError(t, err)
		require.Equal(t, test.state, found.State, "%s: %v", name, found.Reasons)
		require.Contains(t, strings.Join(found.Reasons, "; "), test.says, name)
	}
	_, err := signing.DetachedBlob(digest, edwards)
	require.Error(t, err)
	_, err = signature.Blob(nil, nil, "sha512:00", []signature.Key{key})
	require.Error(t, err)
	unasked, err := signature.Blob(made(signing.Blob(digest, private)), nil, digest, nil)
	require.NoError(t, err)
	require.Equal(t, lifecycle.SignatureNotChecked, unasked.State)
}
