package seal_test

import (
	"crypto/rand"
	"encoding/base64"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/nacl/box"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/seal"
)

func sealed(t *testing.T, key *seal.Key, plain string) string {
	t.Helper()
	public, err := base64.StdEncoding.DecodeString(key.Public())
	require.NoError(t, err)
	cipher, err := box.SealAnonymous(nil, []byte(plain), (*[32]byte)(public), rand.Reader)
	require.NoError(t, err)
	return base64.StdEncoding.EncodeToString(cipher)
}

func TestValueOpensForItsInstanceOnlyAndAfterARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, err := seal.LoadOrCreate(dir)
	require.NoError(t, err)
	text := sealed(t, first, `{"instanceId":"ins_a","value":"dmFsdWU="}`)
	again, err := seal.LoadOrCreate(dir)
	require.NoError(t, err)
	require.Equal(t, first.Public(), again.Public())
	value, err := again.Open(text, "ins_a")
	require.NoError(t, err)
	require.Equal(t, "value", string(value))
	for _, other := range []string{"ins_b", ""} {
		_, err = again.Open(text, other)
		require.ErrorIs(t, err, seal.ErrInvalid)
	}
	info, err := os.Stat(filepath.Join(dir, "sealing.key"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

func TestWhatIsNotSealedForThisNodeDoesNotOpen(t *testing.T) {
	t.Parallel()
	mine, err := seal.LoadOrCreate(t.TempDir())
	require.NoError(t, err)
	other, err := seal.LoadOrCreate(t.TempDir())
	require.NoError(t, err)
	for name, text := range map[string]string{
		"another node":  sealed(t, other, `{"instanceId":"ins_a","value":"dg=="}`),
		"no instance":   sealed(t, mine, `{"value":"dg=="}`),
		"no document":   sealed(t, mine, `value`),
		"no base64":     "%%%",
		"nothing":       "",
		"short":         "AAAA",
		"value no text": sealed(t, mine, `{"instanceId":"ins_a","value":7}`),
	} {
		_, err := mine.Open(text, "ins_a")
		require.ErrorIs(t, err, seal.ErrInvalid, name)
	}
}

func TestBrokenKeyFileIsAnErrorNotANewKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "sealing.key"), []byte("broken"), 0o600))
	_, err := seal.LoadOrCreate(dir)
	require.ErrorContains(t, err, "does not hold 32 bytes")
}
