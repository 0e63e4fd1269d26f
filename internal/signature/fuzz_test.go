package signature_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/signature"
	"github.com/gpuaas/app-platform/sdk/signing"
)

// FuzzBundle feeds anything as a bundle: what no trusted key has signed is never verified.
func FuzzBundle(f *testing.F) {
	f.Add(
		[]byte(
			`{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json","dsseEnvelope":{"payload":"e30=","payloadType":"application/vnd.in-toto+json","signatures":[{"sig":"eA=="}]}}`))
	f.Add(
		[]byte(
			`{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json","messageSignature":{"messageDigest":{"algorithm":"SHA2_256","digest":"eA=="},"signature":"eA=="}}`))
	f.Add([]byte(`null`))
	private, err := signing.NewKey(signing.ECDSA)
	require.NoError(f, err)
	keys := []signature.Key{{Name: "k", Public: private.Public()}}
	digest := "sha256:" + strings.Repeat("a", 64)
	good, err := signing.Blob(digest, private)
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, data []byte) {
		if string(data) == string(good) {
			return
		}
		found, err := signature.Blob(data, data, digest, keys)
		require.NoError(t, err)
		require.Equal(t, lifecycle.SignatureUntrusted == found.State || lifecycle.SignatureMissing == found.State, true,
			found.State)
		require.NotEmpty(t, found.Reasons)
	})
}

// FuzzClassic feeds anything as a manifest under the signature's tag and as its payload, and as the list of referrers.
func FuzzClassic(f *testing.F) {
	f.Add(
		[]byte(
			`{"layers":[{"mediaType":"application/vnd.dev.cosign.simplesigning.v1+json","digest":"sha256:x","size":1,"annotations":{"dev.cosignproject.cosign/signature":"eA=="}}]}`), []byte(`{"critical":{}}`))
	f.Add([]byte(`{"manifests":[{"digest":"sha256:x"}]}`), []byte(`{}`))
	private, err := signing.NewKey(signing.Ed25519)
	require.NoError(f, err)
	keys := []signature.Key{{Name: "k", Public: private.Public()}}
	sum := strings.Repeat("a", 64)
	f.Fuzz(func(t *testing.T, manifest, payload []byte) {
		registry := newShelf()
		registry.manifests["sha256-"+sum+".sig"], registry.manifests["sha256-"+sum] = manifest, manifest
		registry.blobs[digestOf(payload)] = payload
		registry.manifests[digestOf(payload)] = payload
		found, err := signature.Image(t.Context(), registry, "sha256:"+sum, keys)
		require.NoError(t, err)
		require.NotEqual(t, lifecycle.SignatureVerified, found.State)
	})
}

// FuzzPublicKey feeds anything as a key's PEM: what is taken has a fingerprint and an algorithm.
func FuzzPublicKey(f *testing.F) {
	private, err := signing.NewKey(signing.ECDSA)
	require.NoError(f, err)
	text, err := signing.EncodePublic(private.Public())
	require.NoError(f, err)
	f.Add(text)
	f.Fuzz(func(t *testing.T, text []byte) {
		key, fingerprint, algorithm, err := signature.ParsePublicKey(text)
		if err != nil {
			require.Nil(t, key)
			return
		}
		require.True(t, strings.HasPrefix(fingerprint, "sha256:"))
		require.Contains(t, []string{signing.ECDSA, signing.Ed25519}, algorithm)
	})
}
