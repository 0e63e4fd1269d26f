package main

import (
	"crypto/ed25519"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/stretchr/testify/require"
)

func TestCellsCalculateAndReachNothing(t *testing.T) {
	t.Parallel()
	n := newNotes([]string{"GREETING=Hello"})
	for _, one := range []struct{ code, out, wrong string }{
		{code: "6 * 7", out: "42"},
		{code: "rows = 2\n# a remark\ncolumns := 3\nrows * columns", out: "6"},
		{code: "rows == 2", out: "true"},
		{code: `GREETING + ", all"`, out: "Hello, all"},
		{code: "rows = rows + 1", out: "3"},
		{code: "", out: ""},
		{code: "1 / 0", wrong: "line 1: invalid operation: division by zero"},
		{code: "1\nelsewhere", wrong: "line 2: undefined: elsewhere"},
		{code: `os.ReadFile("/etc/passwd")`, wrong: "line 1: undefined: os"},
		{code: "func() {}", wrong: "this notebook knows numbers"},
		{code: "1 << 1000000000", wrong: "shift count"},
		{code: strings.Repeat("1\n", 101) + "1", wrong: "at most 100 lines"},
	} {
		out, err := n.run(one.code)
		if one.wrong != "" {
			require.ErrorContains(t, err, one.wrong, one.code)
			continue
		}
		require.NoError(t, err, one.code)
		require.Equal(t, one.out, out, one.code)
	}
}

func TestACallerIsProvedByThePlatformsKeysAlone(t *testing.T) {
	t.Parallel()
	public, private, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	_, foreign, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	keys, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: public, KeyID: "one", Algorithm: "EdDSA"}}})
	require.NoError(t, err)
	now := time.Now()
	sign := func(key ed25519.PrivateKey, sort string) string {
		signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: jose.JSONWebKey{Key: key, KeyID: "one"}},
			(&jose.SignerOptions{}).WithType(jose.ContentType(sort)))
		require.NoError(t, err)
		text, err := jwt.Signed(signer).Claims(jwt.Claims{Audience: jwt.Audience{"ins_1"},
			Expiry: jwt.NewNumericDate(now.Add(time.Minute))}).Claims(map[string]any{"name": "Dana"}).Serialize()
		require.NoError(t, err)
		return text
	}
	name, err := verify(sign(private, callerType), string(keys), "ins_1", now)
	require.NoError(t, err)
	require.Equal(t, "Dana", name)
	for wrong, check := range map[string]func() (string, error){
		"no key of the platform": func() (string,
			error) {
			return verify(sign(foreign, callerType), string(keys), "ins_1", now)
		},
		"not of the type": func() (string,
			error) {
			return verify(sign(private, "at+jwt"), string(keys), "ins_1", now)
		},
		"not for this notebook now": func() (string,
			error) {
			return verify(sign(private, callerType), string(keys), "ins_2", now)
		},
		"is expired": func() (string, error) {
			return verify(sign(private, callerType), string(keys), "ins_1", now.Add(2*time.Minute))
		},
		"cannot be read": func() (string, error) { return verify("forged", string(keys), "ins_1", now) },
	} {
		_, err := check()
		require.ErrorContains(t, err, wrong)
	}
}
