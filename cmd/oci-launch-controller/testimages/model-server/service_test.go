package main

import (
	"crypto/ed25519"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/oci-launch-controller/testimages/caller"
)

// models are those of one file of weights.
func models(t *testing.T) map[string]*model {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "small.json"),
		[]byte(`{"the":{"dog":2,"cat":2,"cow":1},"cat":{"sleeps":1},"sleeps":{"the":1}}`), 0o600))
	all, err := load(dir)
	require.NoError(t, err)
	return all
}

// post requests a completion, with a caller's token where there is one.
func post(s *service, token, body string) (int, string) {
	r := httptest.NewRequest(http.MethodPost, "/v1/completions", strings.NewReader(body))
	if token != "" {
		r.Header.Set(caller.Header, token)
	}
	w := httptest.NewRecorder()
	s.routes().ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func TestCompletionsFollowFromTheWeights(t *testing.T) {
	t.Parallel()
	s := &service{models: models(t), served: make(map[string]*count)}
	code, said := post(s, "", `{"model":"small","prompt":"See the","max_tokens":4}`)
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, said, `"text":"cat sleeps the cat"`)
	for body, want := range map[string]int{`{`: 400, `{"model":"small","max_tokens":257}`: 400,
		`{"model":"none"}`: 404} {
		code, said := post(s, "", body)
		require.Equal(t, want, code, said)
	}
	require.Equal(t, map[string]*count{"": {1, 2, 4}}, s.served, "what is refused is not counted")
	_, err := load(t.TempDir())
	require.ErrorContains(t, err, "there is no file *.json")
}

func TestCallersAreToldApartAndCounted(t *testing.T) {
	t.Parallel()
	public, private, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	keys, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: public, KeyID: "one",
		Algorithm: "EdDSA"}}})
	require.NoError(t, err)
	token := func(subject string) string {
		key := jose.SigningKey{Algorithm: jose.EdDSA, Key: jose.JSONWebKey{Key: private, KeyID: "one"}}
		signer, err := jose.NewSigner(key, (&jose.SignerOptions{}).WithType(caller.Type))
		require.NoError(t, err)
		text, err := jwt.Signed(signer).Claims(jwt.Claims{Subject: subject, Audience: jwt.Audience{"ins_1"},
			Expiry: jwt.NewNumericDate(time.Now().Add(time.Minute))}).Serialize()
		require.NoError(t, err)
		return text
	}
	s := &service{models: models(t), served: make(map[string]*count)}
	s.callers, err = caller.NewVerifier(string(keys), "ins_1")
	require.NoError(t, err)
	const body = `{"model":"small","prompt":"the cat","max_tokens":1}`
	for _, one := range []string{token("sva_1"), token("sva_1"), token("usr_2")} {
		code, said := post(s, one, body)
		require.Equal(t, http.StatusOK, code, said)
	}
	for wrong, one := range map[string]string{"did not come through the platform": "", "cannot be read": "forged"} {
		code, said := post(s, one, body)
		require.Equal(t, http.StatusUnauthorized, code)
		require.Contains(t, said, wrong)
	}
	w := httptest.NewRecorder()
	s.routes().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	require.Contains(t, w.Body.String(), "model_requests_total{caller=\"sva_1\"} 2\n")
	require.Contains(t, w.Body.String(), "model_requests_total{caller=\"usr_2\"} 1\n")
	require.Contains(t, w.Body.String(), "model_tokens_total{caller=\"sva_1\",kind=\"prompt\"} 4\n")
	require.Len(t, s.served, 2)
}
