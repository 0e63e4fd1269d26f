package keepers_test

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/internal/custody"
	_ "github.com/gpuaas/app-platform/internal/custody/keepers"
)

const forThis = "runtime_secret|ten_a|sec_a|1"

// standIn is not a key service: it answers the requests of the real clients of Vault's transit engine and of AWS KMS,
// as their documentation says, with a key that it keeps in memory. What the real servers do beyond that is not tested
// here. Google's and Azure's clients cannot be pointed at another address by URL and are linked only.
type standIn struct {
	url    string
	sealer cipher.AEAD
	status atomic.Int32 // of the answer; 0 for a good one
	asked  atomic.Int32
	paths  chan string
}

var service *standIn

func TestMain(m *testing.M) {
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	block, _ := aes.NewCipher(key)
	sealer, _ := cipher.NewGCM(block)
	service = &standIn{sealer: sealer, paths: make(chan string, 1_000)}
	server := httptest.NewServer(service)
	service.url = server.URL
	for name, value := range map[string]string{
		"VAULT_ADDR": server.URL, "VAULT_TOKEN": "hvs.stand-in", "VAULT_MAX_RETRIES": "0",
		"AWS_ACCESS_KEY_ID": "stand-in", "AWS_SECRET_ACCESS_KEY": "stand-in", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_MAX_ATTEMPTS": "1",
	} {
		_ = os.Setenv(name, value)
	}
	code := m.Run()
	server.Close()
	os.Exit(code)
}

func (s *standIn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.asked.Add(1)
	s.paths <- r.Method + " " + r.URL.Path + " " + r.Header.Get("X-Vault-Token") + r.Header.Get("X-Amz-Target")
	body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if status := int(s.status.Load()); status != 0 {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"errors":["permission denied"],"__type":"KMSInternalException"}`)
		return
	}
	var asked map[string]string
	_ = json.Unmarshal(body, &asked)
	w.Header().Set("Content-Type", "application/json")
	switch target := r.Header.Get("X-Amz-Target"); {
	case strings.HasPrefix(r.URL.Path, "/v1/transit/encrypt/"):
		_, _ = fmt.Fprintf(w, `{"data":{"ciphertext":"vault:v1:%s"}}`, s.seal(asked["plaintext"]))
	case strings.HasPrefix(r.URL.Path, "/v1/transit/decrypt/"):
		s.opened(w, strings.TrimPrefix(asked["ciphertext"], "vault:v1:"), `{"data":{"plaintext":"%s"}}`)
	case target == "TrentService.Encrypt":
		_, _ = fmt.Fprintf(w, `{"KeyId":"key","CiphertextBlob":"%s"}`, s.seal(asked["Plaintext"]))
	case target == "TrentService.Decrypt":
		s.opened(w, asked["CiphertextBlob"], `{"KeyId":"key","Plaintext":"%s"}`)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (s *standIn) seal(plain string) string {
	nonce := make([]byte, 12)
	_, _ = rand.Read(nonce)
	return base64.StdEncoding.EncodeToString(s.sealer.Seal(nonce, nonce, []byte(plain), nil))
}

func (s *standIn) opened(w http.ResponseWriter, text, answer string) {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err == nil && len(raw) > 12 {
		if raw, err = s.sealer.Open(nil, raw[:12], raw[12:], nil); err == nil {
			_, _ = fmt.Fprintf(w, answer, raw)
			return
		}
	}
	w.WriteHeader(http.StatusBadRequest)
	_, _ = io.WriteString(w, `{"errors":["invalid ciphertext"],"__type":"InvalidCiphertextException"}`)
}

func addresses() map[string]string {
	return map[string]string{
		"vault": "hashivault://platform",
		"aws": "awskms:///alias/platform?region=eu-central-1&endpoint=" + url.QueryEscape(service.url) +
			"&hostname_immutable=true",
	}
}

// The tests share the stand-in's one behaviour, so that they are parts of one.
func TestTheRealClientsOfVaultAndAWSAgainstAStandIn(t *testing.T) {
	t.Parallel()
	for name, address := range addresses() {
		vault, err := custody.Open(t.Context(), address, t.TempDir())
		require.NoError(t, err, name)
		sealed, err := vault.Seal(t.Context(), []byte("canary"), forThis)
		require.NoError(t, err, name)
		value, err := vault.Open(t.Context(), sealed, forThis)
		require.NoError(t, err, name)
		require.Equal(t, "canary", string(value), name)
		_, err = vault.Open(t.Context(), sealed, "another")
		require.ErrorIs(t, err, custody.ErrRefused, name)

		for _, status := range []int32{http.StatusForbidden, http.StatusInternalServerError, http.StatusNoContent} {
			service.status.Store(status)
			_, err = vault.Open(t.Context(), sealed, forThis)
			require.ErrorIs(t, err, custody.ErrKeeper, "%s %d", name, status)
			require.NotContains(t, err.Error(), "canary")
			_, err = vault.Seal(t.Context(), []byte("canary"), forThis)
			require.ErrorIs(t, err, custody.ErrKeeper, "%s %d", name, status)
		}
		service.status.Store(0)
		_, err = vault.Open(t.Context(), sealed, forThis)
		require.NoError(t, err, "%s is asked again: nothing was cached", name)
		damaged := strings.Replace(string(sealed), `"key":"`, `"key":"AAAA`, 1)
		_, err = vault.Open(t.Context(), []byte(damaged), forThis)
		require.ErrorIs(t, err, custody.ErrKeeper, name)
	}
	close(service.paths)
	var paths []string
	for path := range service.paths {
		paths = append(paths, path)
	}
	require.Contains(t, paths, "PUT /v1/transit/encrypt/platform hvs.stand-in")
	require.Contains(t, paths, "PUT /v1/transit/decrypt/platform hvs.stand-in")
	require.Contains(t, paths, "POST / TrentService.Encrypt")
	require.Contains(t, paths, "POST / TrentService.Decrypt")
}
