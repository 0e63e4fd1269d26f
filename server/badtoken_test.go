package server

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/rig/platformtest"
)

// signs is a signature over a token's first two parts.
type signs func(input []byte) []byte

// forged is a token whose header and claims are those of an honest one, with some changed; nil takes one away.
func forged(ring *token.Keyring, subject ids.ID, header, claims map[string]any, sign signs) string {
	key, kid := ring.SigningKey()
	head := map[string]any{"alg": "EdDSA", "kid": kid, "typ": "at+jwt"}
	said := map[string]any{"iss": platformtest.Issuer, "aud": token.Audience, "sub": subject, "sak": subject,
		"keys": nil, "jti": "ses_x", "iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix()}
	change := func(of, by map[string]any) {
		for name, value := range by {
			of[name] = value
			if value == nil {
				delete(of, name)
			}
		}
	}
	change(head, header)
	change(said, claims)
	part := func(of any) string {
		raw, _ := json.Marshal(of)
		return base64.RawURLEncoding.EncodeToString(raw)
	}
	input := part(head) + "." + part(said)
	if sign == nil {
		sign = func(input []byte) []byte { return ed25519.Sign(key, input) }
	}
	return input + "." + base64.RawURLEncoding.EncodeToString(sign([]byte(input)))
}

const whoami = `{ viewer { actor { id } } }`

// strangersCounted is how many showings of credentials that do not hold the audit counts under a code.
func (b *bench) strangersCounted(code fault.Code) (n int) {
	for _, entry := range b.Audit() {
		if entry.Action == "authenticate" && !entry.Allowed && entry.Code == string(code) {
			n += entry.Repeats
		}
	}
	return n
}

func TestBadTokensGetACodeAndACountInTheAuditAndNothingElse(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	h := b.build()
	key, kid := b.Ring.SigningKey()
	public := key.Public().(ed25519.PublicKey)
	published, err := b.Ring.Public()
	require.NoError(t, err)
	_, stranger, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	mac := func(secret []byte) signs {
		return func(input []byte) []byte { h := hmac.New(sha256.New, secret); h.Write(input); return h.Sum(nil) }
	}
	type of = map[string]any
	good := forged(b.Ring, h.Key, nil, nil, nil)
	require.Empty(t, b.post(good, whoami, nil).Errors, "the forger's tools work")
	before := b.fingerprint()
	hour := time.Now().Add(-time.Hour).Unix()
	for name, c := range map[string]struct {
		text string
		code fault.Code
	}{
		"malformed": {"a.b.c", fault.Unauthenticated},
		"cut":       {good[:len(good)-3], fault.Unauthenticated},
		"expired":   {forged(b.Ring, h.Key, nil, of{"exp": hour}, nil), fault.TokenExpired},
		"foreign issuer": {forged(b.Ring, h.Key, nil, of{"iss": "https://evil.test"}, nil),
			fault.Unauthenticated},
		"wrong audience": {forged(b.Ring, h.Key, nil, of{"aud": "an-adapter"}, nil), fault.Unauthenticated},
		"alg none": {forged(b.Ring, h.Key, of{"alg": "none"}, nil, func([]byte) []byte { return nil }),
			fault.Unauthenticated},
		"HS256 with the public key": {forged(b.Ring, h.Key, of{"alg": "HS256"}, nil, mac(public)),
			fault.Unauthenticated},
		"HS256 with what we publish": {forged(b.Ring, h.Key, of{"alg": "HS256"}, nil, mac(published)),
			fault.Unauthenticated},
		"unknown kid": {forged(b.Ring, h.Key, of{"kid": kid + "x"}, nil, nil), fault.Unauthenticated},
		"wrong typ":   {forged(b.Ring, h.Key, of{"typ": "JWT"}, nil, nil), fault.Unauthenticated},
		"another key": {forged(b.Ring, h.Key, nil, nil, func(in []byte) []byte {
			return ed25519.Sign(stranger, in)
		}), fault.Unauthenticated},
		"two subjects": {forged(b.Ring, h.Key, nil, of{"op": h.Operation}, nil), fault.Unauthenticated},
	} {
		got := b.post(c.text, whoami, nil)
		if got.code() == string(fault.RateLimited) { // who tries so many is slowed down; that is the edge's to test
			continue
		}
		require.Equal(t, string(c.code), got.code(), name)
		require.Equal(t, http.StatusUnauthorized, got.Status, name)
		require.Empty(t, got.Data, name)
	}
	delete(before, "audit_entry")
	after := b.fingerprint()
	delete(after, "audit_entry")
	require.Equal(t, before, after, "something was written")
	require.Positive(t, b.strangersCounted(fault.Unauthenticated))
	require.Equal(t, 1, b.strangersCounted(fault.TokenExpired))
}

func TestCredentialsOfWhatIsGoneAreRefusedAndCounted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	deleted, retired, disabled := b.build(), b.build(), b.build()
	exchanged := forged(b.Ring, deleted.Key, nil, nil, nil)
	credentials := map[string]string{"key of a deleted project": deleted.robot, "token of a deleted project": exchanged,
		"key of a deleted account": retired.robot, "session of a disabled person": disabled.admin}
	for name, credential := range credentials {
		require.Empty(t, b.post(credential, whoami, nil).Errors, name)
	}
	operator := b.Session(b.Operator())
	b.SQL(`UPDATE instance SET status = 'STOPPING'`)
	b.SQL(`UPDATE instance SET status = 'STOPPED', released_at = now()`)
	b.SQL(`UPDATE allocation SET status = 'RELEASING'`)
	b.SQL(`UPDATE allocation SET status = 'RELEASED', released_at = now()`)
	b.SQL(`UPDATE operation SET state = 'SUCCEEDED', ended_at = now()`)
	for _, call := range []struct {
		document string
		with     arguments
	}{
		{`mutation($id: ID!) { deleteProject(projectId: $id, reason: "gone") { id } }`,
			arguments{"id": deleted.Project}},
		{`mutation($id: ID!) { deleteServiceAccount(serviceAccountId: $id) { id } }`, arguments{"id": retired.Account}},
		{`mutation($id: ID!) { updateUser(input: {userId: $id, disabled: true}) { id disabledAt } }`,
			arguments{"id": disabled.User}},
	} {
		got := b.post(operator, call.document, call.with)
		require.Empty(t, got.Errors, call.document)
	}
	before := b.fingerprint()
	for name, credential := range credentials {
		got := b.post(credential, whoami, nil)
		require.Equal(t, string(fault.Unauthenticated), got.code(), name)
		require.Empty(t, got.Data, name)
	}
	b.unchangedBut(before, nil, "refused credentials")
	require.GreaterOrEqual(t, b.strangersCounted(fault.Unauthenticated), len(credentials))
	for _, entry := range b.Audit() {
		if entry.Action == "authenticate" && entry.ObjectID != "" {
			require.Equal(t, string(deleted.Key), entry.ObjectID, "a signed token says whose it was")
		}
	}
}
