package token_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
)

// A call between two processes takes seconds, and their clocks may differ.
func TestAPeersTokenNamesItsProcessForHalfAMinute(t *testing.T) {
	t.Parallel()
	ring := newRing(t)
	text, err := ring.SignPeer("edge-1", now)
	require.NoError(t, err)
	for at, valid := range map[time.Time]bool{
		now.Add(-time.Minute - 1): false, now.Add(-time.Minute): true, now: true,
		now.Add(30 * time.Second): true, now.Add(30*time.Second + 1): false,
	} {
		process, err := ring.VerifyPeer(text, at)
		require.Equal(t, valid, err == nil, "%s: %v", at, err)
		if valid {
			require.Equal(t, "edge-1", process)
			continue
		}
		require.True(t, fault.Is(err, fault.Unauthenticated), "%s: %v", at, err)
		require.Empty(t, process)
	}
}

func TestATokenOfOneSortIsNeverTakenForAPeers(t *testing.T) {
	t.Parallel()
	ring := newRing(t)
	peer, err := ring.SignPeer("edge-1", now)
	require.NoError(t, err)
	api, err := ring.Sign(claimsOf(), now)
	require.NoError(t, err)
	delivery, err := ring.SignDelivery(deliveryOf(), now)
	require.NoError(t, err)
	caller, err := ring.SignCaller(token.Caller{Instance: "app-platform-peers", Subject: ids.New(ids.User)}, now)
	require.NoError(t, err)
	for _, text := range []string{api, delivery, caller} {
		_, err = ring.VerifyPeer(text, now)
		refusedBecause(t, err, "a token of another sort")
	}
	for _, text := range []string{peer, caller} {
		_, err = ring.Verify(text, now)
		refusedBecause(t, err, "a token of another sort")
		_, err = ring.VerifyDelivery(text, now)
		refusedBecause(t, err, "a token of another sort")
	}
}

func TestAForgedPeersTokenIsRefused(t *testing.T) {
	t.Parallel()
	ring := newRing(t)
	foreign, err := newRing(t).SignPeer("edge-1", now)
	require.NoError(t, err)
	for text, cause := range map[string]string{
		foreign: "signed by an unknown key", "": "empty input", "x.y.z": "base64",
	} {
		_, err = ring.VerifyPeer(text, now)
		refusedBecause(t, err, cause)
	}
	header, _, sign := honest(ring)
	header["typ"] = "peer+jwt"
	whole := func() map[string]any {
		return map[string]any{"iss": issuer, "aud": "app-platform-peers", "sub": "edge-1", "iat": now.Unix(),
			"exp": now.Add(time.Minute).Unix()}
	}
	process, err := ring.VerifyPeer(ofLength(t, 8<<10, header, whole(), sign), now)
	require.NoError(t, err, "the forger's tools work")
	require.Equal(t, "edge-1", process)
	_, err = ring.VerifyPeer(ofLength(t, 8<<10+1, header, whole(), sign), now)
	require.True(t, fault.Is(err, fault.Unauthenticated), "%v", err)
	for field, value := range map[string]any{"aud": token.Audience, "iss": "https://else.test", "sub": "", "exp": nil} {
		claims := whole()
		claims[field] = value
		if value == nil {
			delete(claims, field)
		}
		process, err = ring.VerifyPeer(forge(header, claims, sign), now)
		require.True(t, fault.Is(err, fault.Unauthenticated), "%s: %v", field, err)
		require.Empty(t, process, field)
	}
}

// What only seems to be the platform's is not let through to an app, so nothing of it is verified.
func TestACredentialOfThePlatformIsKnownByWhatItSaysOfItself(t *testing.T) {
	t.Parallel()
	ring := newRing(t)
	header, claims, sign := honest(ring)
	expired, err := ring.Sign(claimsOf(), now.Add(-24*time.Hour))
	require.NoError(t, err)
	elsewhere, err := token.NewKeyring("https://else.test")
	require.NoError(t, err)
	foreign, err := elsewhere.Sign(claimsOf(), now)
	require.NoError(t, err)
	secret, _ := token.Mint(token.Session)
	for name, c := range map[string]struct {
		text string
		want bool
	}{
		"a secret":                 {secret, true},
		"a secret that is cut":     {"gpu_", true},
		"a token that has expired": {expired, true},
		"a token that is forged":   {forge(header, claims, func([]byte) []byte { return make([]byte, 64) }), true},
		"the longest token":        {ofLength(t, 8<<10, header, claims, sign), true},
		"a longer one":             {ofLength(t, 8<<10+1, header, claims, sign), false},
		"another issuer's token":   {foreign, false},
		"claims of another shape":  {forgeRaw(header, `[]`, sign), false},
		"an app's own password":    {"secret", false},
		"nothing":                  {"", false},
	} {
		require.Equal(t, c.want, ring.Seems(c.text), name)
	}
}
