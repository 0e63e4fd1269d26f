package caller

import (
	"crypto/ed25519"
	"encoding/json"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/stretchr/testify/require"
)

func TestACallerIsProvedByThePlatformsKeysAlone(t *testing.T) {
	t.Parallel()
	public, private, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	_, foreign, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	keys, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: public, KeyID: "one",
		Algorithm: "EdDSA"}}})
	require.NoError(t, err)
	now := time.Now()
	sign := func(key ed25519.PrivateKey, sort string) string {
		signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA,
			Key: jose.JSONWebKey{Key: key, KeyID: "one"}},
			(&jose.SignerOptions{}).WithType(jose.ContentType(sort)))
		require.NoError(t, err)
		text, err := jwt.Signed(signer).Claims(jwt.Claims{Subject: "usr_1", Audience: jwt.Audience{"ins_1"},
			Expiry: jwt.NewNumericDate(now.Add(time.Minute))}).Claims(map[string]any{"name": "Dana",
			"kind": "USER"}).Serialize()
		require.NoError(t, err)
		return text
	}
	of := func(token, instance string, now time.Time) (Caller, error) {
		verifier, err := NewVerifier(string(keys), instance)
		require.NoError(t, err)
		r := httptest.NewRequest("GET", "/", nil)
		if token != "" {
			r.Header.Set(Header, token)
		}
		return verifier.Of(r, now)
	}
	found, err := of(sign(private, Type), "ins_1", now)
	require.NoError(t, err)
	require.Equal(t, Caller{ID: "usr_1", Kind: "USER", Name: "Dana"}, found)
	for _, c := range []struct {
		token, instance, wrong string
		at                     time.Time
	}{
		{sign(foreign, Type), "ins_1", "no key of the platform", now},
		{sign(private, "at+jwt"), "ins_1", "not of the type", now},
		{sign(private, Type), "ins_2", "not valid for this instance now", now},
		{sign(private, Type), "ins_1", "is expired", now.Add(2 * time.Minute)},
		{"forged", "ins_1", "cannot be read", now},
		{"", "ins_1", ErrNobody.Error(), now},
	} {
		found, err := of(c.token, c.instance, c.at)
		require.ErrorContains(t, err, c.wrong)
		require.Zero(t, found)
	}
	_, err = NewVerifier("{", "ins_1")
	require.ErrorContains(t, err, "cannot be read")
}
