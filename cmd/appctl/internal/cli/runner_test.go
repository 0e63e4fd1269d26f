package cli_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/signing"
)

// signedBy fails unless the signature is of the public key in a PEM file, over a report of this kind.
func signedBy(t *testing.T, file, kind string, report []byte, signature string) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	public, err := signing.ParsePublic(text)
	require.NoError(t, err)
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(signature))
	require.NoError(t, err)
	require.True(t, ed25519.Verify(public.Key.(ed25519.PublicKey), signing.ReportStatement(kind, report), raw))
}

func TestARunnerSignsReportsWhereItsKeyIs(t *testing.T) {
	t.Parallel()
	r, address := newRig(t), issuerAddress(t)
	key := filepath.Join(r.dir, "runner")
	r.must(t, "artifact", "keygen", key, "--algorithm", "ed25519")
	report := r.file(t, "tenancy.json", `{"digest": "sha256:abc"}`)
	signature := r.must(t, "evidence", "sign", report, "--key", key+".key", "--kind", "tenancy")
	signedBy(t, key+".pub", "TENANCY", []byte(`{"digest": "sha256:abc"}`), signature)

	url, file := serveAdapter(t, "http://"+address, sound), filepath.Join(r.dir, "report.json")
	got := r.run(t.Context(), "", "adapter", "check", url, "--name", "trivial", "--issuer-listen", address, "--only",
		"signature.none", "--json", file, "--sign-key", key+".key")
	require.Zero(t, got.code, got.stderr+got.stdout)
	written, err := os.ReadFile(file)
	require.NoError(t, err)
	text, err := os.ReadFile(file + ".sig")
	require.NoError(t, err)
	signedBy(t, key+".pub", "CONFORMANCE", written, string(text))

	r.must(t, "artifact", "keygen", filepath.Join(r.dir, "other"))
	for says, args := range map[string][]string{
		"Ed25519":           {"evidence", "sign", report, "--key", filepath.Join(r.dir, "other.key")},
		"not a private key": {"evidence", "sign", report, "--key", key + ".pub"},
		"needs --json FILE": {"adapter", "check", url, "--name", "trivial", "--sign-key", key + ".key"},
		"must be an Ed25519 key": {"admin", "runner", "register", "ci", "--key", filepath.Join(r.dir, "other.pub"),
			"--reason", "x"},
	} {
		refused := r.run(t.Context(), "", args...)
		require.Equal(t, 2, refused.code, args)
		require.Contains(t, refused.stderr, says)
		require.NotContains(t, refused.stderr, "PRIVATE KEY")
	}
}
