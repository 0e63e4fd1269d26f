package signing_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/signing"
)

func TestAKeyIsWrittenAndReadAgain(t *testing.T) {
	t.Parallel()
	for _, algorithm := range []string{signing.ECDSA, signing.Ed25519} {
		private, err := signing.NewKey(algorithm)
		require.NoError(t, err)
		secret, err := signing.EncodePrivate(private)
		require.NoError(t, err)
		again, err := signing.ParsePrivate(secret)
		require.NoError(t, err)
		require.Equal(t, private, again)
		text, err := signing.EncodePublic(private.Public())
		require.NoError(t, err)
		public, err := signing.ParsePublic(text)
		require.NoError(t, err)
		require.Equal(t, algorithm, public.Algorithm)
		block, _ := pem.Decode(text)
		sum := sha256.Sum256(block.Bytes)
		require.Equal(t, "sha256:"+hex.EncodeToString(sum[:]), public.Fingerprint)
	}
	_, err := signing.NewKey("rsa")
	require.ErrorContains(t, err, "ecdsa-p256 or ed25519")
}

func TestWhatIsNoKeyIsRefusedWithoutRepeatingIt(t *testing.T) {
	t.Parallel()
	block := func(kind string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}) }
	wide, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	require.NoError(t, err)
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	private := func(key any) []byte {
		der, err := x509.MarshalPKCS8PrivateKey(key)
		require.NoError(t, err)
		return block("PRIVATE KEY", der)
	}
	public := func(key any) []byte {
		der, err := x509.MarshalPKIXPublicKey(key)
		require.NoError(t, err)
		return block("PUBLIC KEY", der)
	}
	good, err := signing.NewKey(signing.ECDSA)
	require.NoError(t, err)
	for says, text := range map[string][]byte{
		"is not PEM":             []byte("hidden"),
		"at most 16384 bytes":    make([]byte, 20<<10),
		"more than one key":      append(private(good), private(good)...),
		"is encrypted":           block("ENCRYPTED SIGSTORE PRIVATE KEY", []byte("hidden")),
		"is not a private key":   public(good.Public()),
		"an unsupported format":  block("PRIVATE KEY", []byte("hidden")),
		"on the curve P-256":     private(wide),
		"ECDSA P-256 or Ed25519": private(other),
	} {
		_, err := signing.ParsePrivate(text)
		require.ErrorContains(t, err, says)
		require.NotContains(t, err.Error(), "hidden")
	}
	for says, text := range map[string][]byte{
		"is not PEM": []byte("x"), "not a public key": private(good),
		"not a PKIX public key": block("PUBLIC KEY", []byte("x")),
		"on the curve P-256":    public(wide.Public()), "ECDSA P-256 or Ed25519": public(other.Public()),
		"more than one key": append(public(good.Public()), public(good.Public())...),
	} {
		_, err := signing.ParsePublic(text)
		require.ErrorContains(t, err, says)
	}
}

// TestASignatureHasTheShapeThatOtherToolsRead holds every name of the formats.
func TestASignatureHasTheShapeThatOtherToolsRead(t *testing.T) {
	t.Parallel()
	private, err := signing.NewKey(signing.ECDSA)
	require.NoError(t, err)
	sum := strings.Repeat("ab", 32)
	subject := signing.Descriptor{MediaType: signing.ManifestType, Digest: "sha256:" + sum, Size: 7}
	signed, err := signing.Image(subject, private)
	require.NoError(t, err)
	require.Empty(t, signed.Tag)
	var referrer, bundle map[string]any
	require.NoError(t, json.Unmarshal(signed.Manifest, &referrer))
	require.Equal(t, "application/vnd.dev.sigstore.bundle.v0.3+json", referrer["artifactType"])
	require.Equal(t, map[string]any{"mediaType": signing.ManifestType, "digest": subject.Digest, "size": 7.0},
		referrer["subject"])
	require.Equal(t, "application/vnd.oci.empty.v1+json", referrer["config"].(map[string]any)["mediaType"])
	require.Equal(t, map[string]any{"dev.sigstore.bundle.content": "dsse-envelope",
		"dev.sigstore.bundle.predicateType": "https://sigstore.dev/cosign/sign/v1"}, referrer["annotations"])
	require.NoError(t, json.Unmarshal(signed.Blobs[1], &bundle))
	require.Equal(t, []string{"dsseEnvelope", "mediaType", "verificationMaterial"}, names(bundle))
	require.Equal(t, []string{"payload", "payloadType", "signatures"}, names(bundle["dsseEnvelope"].(map[string]any)))
	require.Equal(t, []string{"hint"},
		names(bundle["verificationMaterial"].(map[string]any)["publicKey"].(map[string]any)))
	require.Equal(t, "DSSEv1 4 text 2 hi", string(signing.PAE("text", []byte("hi"))))

	classic, err := signing.ClassicImage("host/app", subject.Digest, private, nil)
	require.NoError(t, err)
	require.Equal(t, "sha256-"+sum+".sig", classic.Tag)
	require.JSONEq(t,
		`{"critical": {"identity": {"docker-reference": "host/app"}, "image": {"docker-manifest-digest": "sha256:`+
			sum+`"},
		"type": "cosign container image signature"}, "optional": null}`, string(classic.Blobs[1]))
	blob, err := signing.Blob(subject.Digest, private)
	require.NoError(t, err)
	bundle = nil
	require.NoError(t, json.Unmarshal(blob, &bundle))
	require.Equal(t, "SHA2_256",
		bundle["messageSignature"].(map[string]any)["messageDigest"].(map[string]any)["algorithm"])
	for _, bad := range []string{"", "sha256:", "sha256:" + strings.ToUpper(sum), "sha512:" + sum, sum} {
		_, err := signing.Image(signing.Descriptor{Digest: bad}, private)
		require.Error(t, err, bad)
		_, err = signing.Blob(bad, private)
		require.Error(t, err, bad)
		_, err = signing.ClassicImage("host/app", bad, private, nil)
		require.Error(t, err, bad)
	}
	_, err = signing.ClassicImage("host/app", subject.Digest, private, []byte("garbage"))
	require.ErrorContains(t, err, "not a manifest")
	for range 31 {
		classic, err = signing.ClassicImage("host/app", subject.Digest, private, classic.Manifest)
		require.NoError(t, err)
	}
	_, err = signing.ClassicImage("host/app", subject.Digest, private, classic.Manifest)
	require.ErrorContains(t, err, "has 32 signatures already")
}

func names(object map[string]any) []string {
	var out []string
	for _, name := range []string{"dsseEnvelope", "hint", "mediaType", "messageSignature", "payload", "payloadType",
		"signatures", "verificationMaterial"} {
		if _, ok := object[name]; ok {
			out = append(out, name)
		}
	}
	if len(out) != len(object) {
		return append(out, "and more")
	}
	return out
}
