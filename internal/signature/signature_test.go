package signature_test

import (
	"context"
	"crypto"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/signature"
	"github.com/gpuaas/app-platform/sdk/signing"
)

// shelf is a registry in memory.
type shelf struct {
	manifests map[string][]byte
	blobs     map[string][]byte
	referrers []signature.Descriptor
	unlisted  bool  // it lists no referrers: it does not know how to
	broken    error // what it answers to everything
}

func newShelf() *shelf { return &shelf{manifests: map[string][]byte{}, blobs: map[string][]byte{}} }

func (s *shelf) Manifest(_ context.Context, reference string) ([]byte, string, error) {
	if s.broken != nil {
		return nil, "", s.broken
	}
	data, ok := s.manifests[reference]
	if !ok {
		return nil, "", signature.ErrNotFound
	}
	return data, signing.ManifestType, nil
}

func (s *shelf) Blob(_ context.Context, digest string, limit int64) ([]byte, error) {
	data, ok := s.blobs[digest]
	if !ok {
		return nil, signature.ErrNotFound
	}
	if int64(len(data)) > limit {
		return nil, errors.New("too large")
	}
	return data, s.broken
}

func (s *shelf) Referrers(context.Context, string) ([]signature.Descriptor, error) {
	if s.unlisted {
		return nil, signature.ErrNotFound
	}
	return s.referrers, s.broken
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// refer puts a referrer with its blobs on the shelf.
func (s *shelf) refer(artifactType string, manifest []byte, blobs ...[]byte) {
	digest := digestOf(manifest)
	s.manifests[digest] = manifest
	for _, blob := range blobs {
		s.blobs[digestOf(blob)] = blob
	}
	s.referrers = append(s.referrers, signature.Descriptor{Digest: digest, MediaType: signing.ManifestType,
		ArtifactType: artifactType, Size: int64(len(manifest))})
}

// add puts a signature on the shelf, listed as a registry would or under its tag.
func (s *shelf) add(t *testing.T, signed *signing.Signed, err error) {
	t.Helper()
	require.NoError(t, err)
	if signed.Tag == "" {
		s.refer(signing.BundleType, signed.Manifest, signed.Blobs...)
		return
	}
	s.manifests[signed.Tag] = signed.Manifest
	for _, blob := range signed.Blobs {
		s.blobs[digestOf(blob)] = blob
	}
}

func golden(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return data
}

// goldenKey returns the public key for the golden signatures of an algorithm.
func goldenKey(t *testing.T, algorithm string) signature.Key {
	t.Helper()
	public, fingerprint, _, err := signature.ParsePublicKey(golden(t, algorithm+".pub"))
	require.NoError(t, err)
	return signature.Key{Name: "golden " + algorithm, Public: public, Fingerprint: fingerprint}
}

// newKey makes a key pair.
func newKey(t *testing.T, algorithm, name string) (crypto.Signer, signature.Key) {
	t.Helper()
	private, err := signing.NewKey(algorithm)
	require.NoError(t, err)
	public, err := signing.Describe(private.Public())
	require.NoError(t, err)
	return private, signature.Key{Name: name, Public: public.Key, Fingerprint: public.Fingerprint}
}

func TestWhatOtherToolsHaveSignedIsVerified(t *testing.T) {
	t.Parallel()
	digest := digestOf(golden(t, "image.json"))
	for _, algorithm := range []string{"ecdsa", "ed25519"} {
		_, other := newKey(t, signing.ECDSA, "other")
		key := goldenKey(t, algorithm)
		for _, shape := range []string{signing.BundleType, signing.EmptyType, ""} {
			registry := newShelf()
			registry.refer("application/spdx+json", []byte(`{"layers":[]}`))
			registry.refer(shape, golden(t, algorithm+".referrer.json"), golden(t, algorithm+".bundle.json"))
			found, err := signature.Image(t.Context(), registry, digest, []signature.Key{other, key})
			require.NoError(t, err)
			require.Equal(t, lifecycle.SignatureVerified, found.State, "%s %q: %v", algorithm, shape, found.Reasons)
			require.Equal(t, key.Name, found.Key.Name)
		}
		registry := newShelf()
		registry.unlisted = true
		payload := golden(t, algorithm+".payload.json")
		registry.manifests["sha256-"+strings.TrimPrefix(digest, "sha256:")+".sig"] = golden(t,
			algorithm+".classic.json")
		registry.blobs[digestOf(payload)] = payload
		found, err := signature.Image(t.Context(), registry, digest, []signature.Key{other, key})
		require.NoError(t, err)
		require.Equal(t, lifecycle.SignatureVerified, found.State, "%v", found.Reasons)
	}
	blob := digestOf(golden(t, "blob.txt"))
	key := goldenKey(t, "ecdsa")
	for name, beside := range map[string][2][]byte{
		"bundle": {golden(t, "blob.sigstore.json"), nil}, "bare": {nil, golden(t, "blob.sig")},
		"bundle of nobody's, and a good bare one": {[]byte("{}"), golden(t, "blob.sig")},
	} {
		found, err := signature.Blob(beside[0], beside[1], blob, []signature.Key{key})
		require.NoError(t, err)
		require.Equal(t, lifecycle.SignatureVerified, found.State, "%s: %v", name, found.Reasons)
	}
}

func TestReferrersAreFoundUnderTheTagThatStandsForTheirList(t *testing.T) {
	t.Parallel()
	private, key := newKey(t, signing.ECDSA, "publisher")
	digest := digestOf([]byte("manifest"))
	registry := newShelf()
	signed, err := signing.Image(signing.Descriptor{MediaType: signing.ManifestType, Digest: digest, Size: 8}, private)
	registry.add(t, signed, err)
	index, err := json.Marshal(map[string]any{"manifests": registry.referrers})
	require.NoError(t, err)
	registry.referrers, registry.unlisted = nil, true
	registry.manifests["sha256-"+strings.TrimPrefix(digest, "sha256:")] = index
	found, err := signature.Image(t.Context(), registry, digest, []signature.Key{key})
	require.NoError(t, err)
	require.Equal(t, lifecycle.SignatureVerified, found.State, "%v", found.Reasons)
}

func TestOfSeveralSignaturesOneByATrustedKeyIsEnough(t *testing.T) {
	t.Parallel()
	digest := digestOf([]byte("manifest"))
	stranger, _ := newKey(t, signing.Ed25519, "stranger")
	private, key := newKey(t, signing.Ed25519, "publisher")
	subject := signing.Descriptor{MediaType: signing.ManifestType, Digest: digest, Size: 8}
	bundles := newShelf()
	for _, by := range []crypto.Signer{stranger, stranger, private} {
		signed, err := signing.Image(subject, by)
		bundles.add(t, signed, err)
	}
	classic := newShelf()
	first, err := signing.ClassicImage("host/app", digest, stranger, nil)
	classic.add(t, first, err)
	second, err := signing.ClassicImage("host/app", digest, private, first.Manifest)
	classic.add(t, second, err)
	for name, registry := range map[string]*shelf{"bundles": bundles, "classic": classic} {
		found, err := signature.Image(t.Context(), registry, digest, []signature.Key{key})
		require.NoError(t, err)
		require.Equal(t, lifecycle.SignatureVerified, found.State, "%s: %v", name, found.Reasons)
	}
}
