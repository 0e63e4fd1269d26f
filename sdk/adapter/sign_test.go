package adapter

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"
)

func (l *lab) claims(method, target string, body []byte) RequestClaims {
	now := time.Now()
	return RequestClaims{
		Issuer: l.server.URL, Audience: l.name, IssuedAt: now.Unix(), Expires: now.Add(TokenLife).Unix(),
		ID: "j1", Method: method, Target: target, BodyDigest: BodyDigest(body),
	}
}

func TestRequestsWithoutAFittingTokenAreRefused(t *testing.T) {
	t.Parallel()
	l, base := setup(t)
	const target = "/v1/operations?wait=0"
	good := l.claims(http.MethodGet, target, nil)
	changes := map[string]func(*RequestClaims){
		"wrong issuer":      func(c *RequestClaims) { c.Issuer = "https://other" },
		"wrong audience":    func(c *RequestClaims) { c.Audience = "other-adapter" },
		"wrong method":      func(c *RequestClaims) { c.Method = http.MethodPut },
		"wrong path":        func(c *RequestClaims) { c.Target = "/v1/adapter" },
		"wrong query":       func(c *RequestClaims) { c.Target = "/v1/operations?wait=1" },
		"wrong body":        func(c *RequestClaims) { c.BodyDigest = BodyDigest([]byte("x")) },
		"expired":           func(c *RequestClaims) { c.IssuedAt -= 200; c.Expires -= 200 },
		"from the future":   func(c *RequestClaims) { c.IssuedAt += 200; c.Expires += 200 },
		"long-lived":        func(c *RequestClaims) { c.Expires += 3600 },
		"without an id":     func(c *RequestClaims) { c.ID = "" },
		"an empty audience": func(c *RequestClaims) { c.Audience = "" },
	}
	tokens := map[string]string{"no token": "", "garbage": "Bearer abc", "basic": "Basic abc"}
	for name, change := range changes {
		claims := good
		change(&claims)
		token, err := l.signer.SignClaims(claims)
		require.NoError(t, err)
		tokens[name] = "Bearer " + token
	}
	tokens["alg none"] = "Bearer " + unsigned(t, good)
	tokens["hmac with the public key"] = "Bearer " + hmacSigned(t, good, l.key.Public().(ed25519.PublicKey))
	tokens["another key with our kid"] = "Bearer " + signedBy(t, good, l.server.URL, "k1")
	tokens["unknown kid"] = "Bearer " + signedBy(t, good, l.server.URL, "k9")
	tokens["a token too long"] = "Bearer " + strings.Repeat("a", maxToken+1)
	for name, header := range tokens {
		require.Equal(t, http.StatusUnauthorized, statusWith(t, base+target, header), name)
	}
	token, err := l.signer.SignClaims(good)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, statusWith(t, base+target, "Bearer "+token))
	require.Equal(t, http.StatusOK, statusWith(t, base+target, "Bearer "+token), "a repeat within its minute is a retry")
}

func TestTokenDoesNotFitAnotherBody(t *testing.T) {
	t.Parallel()
	l, base := setup(t)
	req, err := http.NewRequest(http.MethodPost, base+CancelPath("op_1"), strings.NewReader(`{"attempt":2}`))
	require.NoError(t, err)
	require.NoError(t, l.signer.SignRequest(req, l.name, []byte(`{"attempt":1}`)))
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusUnauthorized, resp.StatusCode)
	require.Equal(t, CodeUnauthorized, errorOf(t, body).Code)
	require.NotContains(t, string(body), "bd", "the answer must not teach what to change")
}

func statusWith(t *testing.T, url, header string) int {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, url, nil)
	require.NoError(t, err)
	if header != "" {
		req.Header.Set("Authorization", header)
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	return resp.StatusCode
}

func unsigned(t *testing.T, claims RequestClaims) string {
	t.Helper()
	payload, err := json.Marshal(claims)
	require.NoError(t, err)
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"none","kid":"k1"}`)) + "." + encode(payload) + "."
}

func hmacSigned(t *testing.T, claims RequestClaims, secret []byte) string {
	t.Helper()
	options := (&jose.SignerOptions{}).WithHeader("kid", "k1")
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: secret}, options)
	require.NoError(t, err)
	payload, err := json.Marshal(claims)
	require.NoError(t, err)
	signed, err := signer.Sign(payload)
	require.NoError(t, err)
	token, err := signed.CompactSerialize()
	require.NoError(t, err)
	return token
}

func signedBy(t *testing.T, claims RequestClaims, issuer, kid string) string {
	t.Helper()
	_, private, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	signer, err := NewSigner(issuer, kid, private)
	require.NoError(t, err)
	token, err := signer.SignClaims(claims)
	require.NoError(t, err)
	return token
}

func TestKeySetFollowsARotationAndBoundsItsFetches(t *testing.T) {
	t.Parallel()
	one, _, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	two, _, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	var fetches atomic.Int32
	var answer atomic.Value
	answer.Store(keySetJSON(t, "k1", one))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fetches.Add(1)
		_, _ = io.WriteString(w, answer.Load().(string))
	}))
	t.Cleanup(server.Close)
	now := time.Now()
	keys := NewKeySet(server.URL, nil)
	keys.now = func() time.Time { return now }
	ctx := context.Background()

	got, err := keys.Key(ctx, "k1")
	require.NoError(t, err)
	require.Equal(t, one, got)
	for range 20 {
		_, err = keys.Key(ctx, "invented")
		require.Error(t, err)
	}
	require.EqualValues(t, 1, fetches.Load(), "invented key ids must not cause fetches without pause")

	answer.Store(keySetJSON(t, "k2", two))
	now = now.Add(keySetPause)
	got, err = keys.Key(ctx, "k2")
	require.NoError(t, err)
	require.Equal(t, two, got)
	_, err = keys.Key(ctx, "k1")
	require.Error(t, err, "a key that was withdrawn must be gone")

	answer.Store("nonsense")
	now = now.Add(keySetLife)
	_, err = keys.Key(ctx, "k2")
	require.NoError(t, err, "while the platform cannot be read the keys serve on")
	now = now.Add(keySetStale)
	_, err = keys.Key(ctx, "k2")
	require.ErrorContains(t, err, "not available")
	answer.Store(strings.Repeat("x", maxKeySet+1))
	now = now.Add(keySetPause)
	_, err = keys.Key(ctx, "k2")
	require.ErrorContains(t, err, "bytes")
}

func keySetJSON(t *testing.T, kid string, key ed25519.PublicKey) string {
	t.Helper()
	raw, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key, KeyID: kid, Algorithm: "EdDSA"}}})
	require.NoError(t, err)
	return string(raw)
}

func TestSignerRefusesEmptyNames(t *testing.T) {
	t.Parallel()
	_, private, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	_, err = NewSigner("", "k", private)
	require.Error(t, err)
	_, err = NewSigner("https://p", "", private)
	require.Error(t, err)
}
