package token_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
)

const issuer = "https://platform.test"

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func newRing(t testing.TB) *token.Keyring {
	t.Helper()
	ring, err := token.NewKeyring(issuer)
	require.NoError(t, err)
	return ring
}

func claimsOf() token.Claims {
	return token.Claims{Operation: ids.New(ids.Operation), Instance: ids.New(ids.Instance),
		Keys: []string{"node.task.run"}, ExpiresAt: now.Add(time.Hour)}
}

func segment(v any) string {
	raw, _ := json.Marshal(v)
	return base64.RawURLEncoding.EncodeToString(raw)
}

// forge signs a header and claims of the test's choosing.
func forge(header, claims map[string]any, sign func(input []byte) []byte) string {
	input := segment(header) + "." + segment(claims)
	return input + "." + base64.RawURLEncoding.EncodeToString(sign([]byte(input)))
}

// honest is the header and the claims of a token that the ring accepts when its key signs them.
func honest(ring *token.Keyring) (header, claims map[string]any, sign func([]byte) []byte) {
	key, id := ring.SigningKey()
	subject := string(ids.New(ids.Operation))
	header = map[string]any{"alg": "EdDSA", "kid": id, "typ": "at+jwt"}
	claims = map[string]any{"iss": issuer, "aud": token.Audience, "sub": subject, "op": subject, "jti": "ses_x",
		"keys": []string{},
		"iat":  now.Unix(), "exp": now.Add(time.Hour).Unix()}
	return header, claims, func(input []byte) []byte { return ed25519.Sign(key, input) }
}

func TestASignedTokenSaysWhatWasSigned(t *testing.T) {
	t.Parallel()
	ring := newRing(t)
	for name, claims := range map[string]token.Claims{
		"operation": claimsOf(), "call": {Instance: ids.New(ids.Instance), Keys: []string{"k"},
			ExpiresAt: now.Add(time.Minute)},
	} {
		text, err := ring.Sign(claims, now)
		require.NoError(t, err)
		read, err := ring.Verify(text, now)
		require.NoError(t, err, name)
		require.NotEmpty(t, read.ID)
		claims.ID, claims.ExpiresAt, read.ExpiresAt = read.ID, time.Time{}, time.Time{}
		require.Equal(t, claims, read)
	}
}

func TestATokenEndsOnTime(t *testing.T) {
	t.Parallel()
	ring := newRing(t)
	text, err := ring.Sign(claimsOf(), now)
	require.NoError(t, err)
	_, err = ring.Verify(text, now.Add(time.Hour-time.Second))
	require.NoError(t, err)
	_, err = ring.Verify(text, now.Add(time.Hour+time.Second))
	require.True(t, fault.Is(err, fault.TokenExpired), "%v", err)
	_, err = ring.Verify(text, now.Add(-time.Hour))
	require.True(t, fault.Is(err, fault.Unauthenticated), "issued in the future: %v", err)
}

func TestForgedTokensAreRefused(t *testing.T) {
	t.Parallel()
	ring := newRing(t)
	header, claims, sign := honest(ring)
	_, err := ring.Verify(forge(header, claims, sign), now)
	require.NoError(t, err, "the forger's tools work")

	private, _ := ring.SigningKey()
	public := private.Public().(ed25519.PublicKey)
	der, err := x509.MarshalPKIXPublicKey(public)
	require.NoError(t, err)
	published, err := ring.Public()
	require.NoError(t, err)
	mac := func(key []byte) func([]byte) []byte {
		return func(input []byte) []byte { h := hmac.New(sha256.New, key); h.Write(input); return h.Sum(nil) }
	}
	with := func(of map[string]any, name string, value any) map[string]any {
		out := map[string]any{}
		for k, v := range of {
			out[k] = v
		}
		out[name] = value
		if value == nil {
			delete(out, name)
		}
		return out
	}
	_, stranger, _ := ed25519.GenerateKey(nil)
	good := forge(header, claims, sign)
	parts := strings.Split(good, ".")
	cases := map[string]string{
		"alg none":              forge(with(header, "alg", "none"), claims, func([]byte) []byte { return nil }),
		"alg none, signed":      forge(with(header, "alg", "none"), claims, sign),
		"HS256, raw public key": forge(with(header, "alg", "HS256"), claims, mac(public)),
		"HS256, DER public key": forge(with(header, "alg", "HS256"), claims, mac(der)),
		"HS256, PEM public key": forge(with(header, "alg", "HS256"), claims,
			mac(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))),
		"HS256, published keys": forge(with(header, "alg", "HS256"), claims, mac(published)),
		"unknown kid":           forge(with(header, "kid", "other"), claims, sign),
		"no kid":                forge(with(header, "kid", nil), claims, sign),
		"stranger's key":        forge(header, claims, func(in []byte) []byte { return ed25519.Sign(stranger, in) }),
		"key in the header": forge(with(with(header, "kid", nil), "jwk", jose.JSONWebKey{Key: stranger.Public()}),
			claims, func(in []byte) []byte { return ed25519.Sign(stranger, in) }),
		"critical extension":   forge(with(header, "crit", []string{"x"}), claims, sign),
		"other audience":       forge(header, with(claims, "aud", "an-adapter"), sign),
		"no audience":          forge(header, with(claims, "aud", nil), sign),
		"other issuer":         forge(header, with(claims, "iss", "https://evil.test"), sign),
		"no issuer":            forge(header, with(claims, "iss", nil), sign),
		"no expiry":            forge(header, with(claims, "exp", nil), sign),
		"not yet":              forge(header, with(claims, "nbf", now.Add(time.Hour).Unix()), sign),
		"subject of another":   forge(header, with(claims, "sub", string(ids.New(ids.Operation))), sign),
		"operation of another": forge(header, with(claims, "op", string(ids.New(ids.Operation))), sign),
		"tampered claims": parts[0] + "." + segment(with(claims, "keys", []string{"app.create"})) +
			"." + parts[2],
		"no signature":            parts[0] + "." + parts[1] + ".",
		"two parts":               parts[0] + "." + parts[1],
		"four parts":              good + "." + parts[2],
		"claims are no object":    forgeRaw(header, `[]`, sign),
		"claims of another shape": forgeRaw(header, `{"op":7}`, sign),
		"too long":                forge(header, with(claims, "pad", strings.Repeat("x", token.MaxSigned)), sign),
	}
	for name, text := range cases {
		_, err := ring.Verify(text, now)
		require.True(t, fault.Is(err, fault.Unauthenticated), "%s: %v", name, err)
	}
}

func forgeRaw(header map[string]any, claims string, sign func([]byte) []byte) string {
	input := segment(header) + "." + base64.RawURLEncoding.EncodeToString([]byte(claims))
	return input + "." + base64.RawURLEncoding.EncodeToString(sign([]byte(input)))
}

// newKey writes a signing key under a name, as an operator who rotates does.
func newKey(t *testing.T, dir, name string) {
	t.Helper()
	seed := sha256.Sum256([]byte(name))
	block := pem.EncodeToMemory(&pem.Block{Type: "ED25519 SEED", Bytes: seed[:]})
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), block, 0o600))
}

func TestANewKeySignsAndTheOldOneVerifiesUntilItIsTakenAway(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	newKey(t, dir, "20260101T000000.pem")
	old, err := token.LoadKeyring(dir, issuer)
	require.NoError(t, err)
	before, err := old.Sign(claimsOf(), now)
	require.NoError(t, err)

	newKey(t, dir, "20260601T000000.pem")
	both, err := token.LoadKeyring(dir, issuer)
	require.NoError(t, err)
	_, oldID := old.SigningKey()
	_, newID := both.SigningKey()
	require.NotEqual(t, oldID, newID)
	_, err = both.Verify(before, now)
	require.NoError(t, err)
	after, err := both.Sign(claimsOf(), now)
	require.NoError(t, err)
	_, err = old.Verify(after, now)
	require.True(t, fault.Is(err, fault.Unauthenticated))
	var set jose.JSONWebKeySet
	published, err := both.Public()
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(published, &set))
	require.Len(t, set.Keys, 2)
	for _, key := range set.Keys {
		require.True(t, key.IsPublic())
	}
	require.NotContains(t, string(published), `"d"`)

	require.NoError(t, os.Remove(filepath.Join(dir, "20260101T000000.pem")))
	left, err := token.LoadKeyring(dir, issuer)
	require.NoError(t, err)
	_, err = left.Verify(before, now)
	require.True(t, fault.Is(err, fault.Unauthenticated))
	_, err = left.Verify(after, now)
	require.NoError(t, err)
}

func TestAFirstKeyIsMadeOnceAndKeptFromOthersEyes(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "keys")
	first, err := token.LoadKeyring(dir, issuer)
	require.NoError(t, err)
	second, err := token.LoadKeyring(dir, issuer)
	require.NoError(t, err)
	_, one := first.SigningKey()
	_, two := second.SigningKey()
	require.Equal(t, one, two)
	files, err := filepath.Glob(filepath.Join(dir, "*.pem"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	info, err := os.Stat(files[0])
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

func TestAKeyFileThatHoldsNoSeedIsNamed(t *testing.T) {
	t.Parallel()
	for name, content := range map[string][]byte{
		"empty.pem": nil, "text.pem": []byte("hello"),
		"short.pem": pem.EncodeToMemory(&pem.Block{Type: "ED25519 SEED", Bytes: bytes.Repeat([]byte{1}, 31)}),
		"other.pem": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: bytes.Repeat([]byte{1}, 32)}),
	} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
		_, err := token.LoadKeyring(dir, issuer)
		require.ErrorContains(t, err, name)
	}
}

func FuzzVerify(f *testing.F) {
	ring := newRing(f)
	signed, err := ring.Sign(claimsOf(), now)
	require.NoError(f, err)
	header, claims, sign := honest(ring)
	known := map[string]bool{} // what the ring's key has signed
	for _, text := range []string{signed, forge(header, claims, sign), forgeRaw(header, `{}`, sign),
		forgeRaw(header, `null`, sign)} {
		known[text[:strings.LastIndex(text, ".")]] = true
		f.Add(text)
	}
	for _, text := range []string{"..", "a.b.c", "", strings.Replace(signed, ".", "..", 1)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		read, err := ring.Verify(text, now)
		if err == nil {
			require.NotZero(t, read.ExpiresAt)
			require.True(t, known[text[:strings.LastIndex(text, ".")]], text)
			return
		}
		require.True(t, fault.Is(err, fault.Unauthenticated) || fault.Is(err, fault.TokenExpired))
	})
}
