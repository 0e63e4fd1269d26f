package adapter

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adapter/sign"
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
	tokens["a token too long"] = "Bearer " + strings.Repeat("a", sign.MaxToken+1)
	for name, header := range tokens {
		require.Equal(t, http.StatusUnauthorized, statusWith(t, base+target, header), name)
	}
	token, err := l.signer.SignClaims(good)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, statusWith(t, base+target, "Bearer "+token))
	require.Equal(t, http.StatusOK, statusWith(t, base+target, "Bearer "+token),
		"a repeat within its minute is a retry")
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

func TestSignerRefusesEmptyNames(t *testing.T) {
	t.Parallel()
	_, private, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	_, err = NewSigner("", "k", private)
	require.Error(t, err)
	_, err = NewSigner("https://p", "", private)
	require.Error(t, err)
}
