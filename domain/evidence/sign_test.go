package evidence_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/evidence"
	"github.com/gpuaas/app-platform/domain/lifecycle"
)

// signer is the key whose seed is that byte over and over.
func signer(seed byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
}

func TestARunnersKeyIs32BytesInBase64(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct {
		text string
		fits bool
	}{
		"32 bytes":         {base64.StdEncoding.EncodeToString(make([]byte, 32)), true},
		"31 bytes":         {base64.StdEncoding.EncodeToString(make([]byte, 31)), false},
		"33 bytes":         {base64.StdEncoding.EncodeToString(make([]byte, 33)), false},
		"nothing":          {"", false},
		"no base64":        {strings.Repeat("?", 44), false},
		"more after it":    {base64.StdEncoding.EncodeToString(make([]byte, 32)) + "?", false},
		"hexadecimal":      {strings.Repeat("0", 64), false},
		"the private half": {base64.StdEncoding.EncodeToString(signer(1)), false},
	} {
		key, err := evidence.PublicKey(one.text)
		if one.fits {
			require.NoError(t, err, name)
			require.Equal(t, ed25519.PublicKey(make([]byte, 32)), key, name)
			continue
		}
		require.EqualError(t, err, "must be an Ed25519 public key, 32 bytes in base64", name)
		require.Empty(t, key, name)
	}
}

func TestASignatureIsOfOneKeyOverOneKindAndDigest(t *testing.T) {
	t.Parallel()
	private := signer(1)
	text := base64.StdEncoding.EncodeToString(private.Public().(ed25519.PublicKey))
	key, err := evidence.PublicKey(text)
	require.NoError(t, err)
	other := signer(2).Public().(ed25519.PublicKey)
	statement := evidence.Statement(lifecycle.EvidenceTenancy, anyDigest)
	require.Equal(t, "gpuaas.app/evidence/v1\nTENANCY\n"+anyDigest+"\n", string(statement),
		"runners outside the platform sign these bytes")
	signature := ed25519.Sign(private, statement)
	write := base64.StdEncoding.EncodeToString

	require.True(t, evidence.Signed(key, statement, write(signature)))
	require.False(t, evidence.Signed(other, statement, write(signature)), "of another key")
	require.False(t, evidence.Signed(key, evidence.Statement(evidence.Smoke, anyDigest), write(signature)),
		"of another kind")
	require.False(t, evidence.Signed(key, evidence.Statement(lifecycle.EvidenceTenancy, "sha256:1"), write(signature)),
		"of another digest")
	for name, text := range map[string]string{
		"nothing": "", "another signature": write(ed25519.Sign(private, []byte("other"))),
		"a byte short": write(signature[:63]), "a byte more": write(append(bytes.Clone(signature), 0)),
		"no base64": "?", "the signature and more": write(signature) + "?",
	} {
		require.False(t, evidence.Signed(key, statement, text), name)
	}
}
