package token_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
)

func deliveryOf() token.Delivery {
	return token.Delivery{Task: ids.New(ids.NodeTask), Node: ids.New(ids.Node), Artifact: ids.New(ids.Artifact),
		ExpiresAt: now.Add(10 * time.Minute)}
}

func TestADeliveryTokenSaysWhatItIsForUntilItIsOver(t *testing.T) {
	t.Parallel()
	ring := newRing(t)
	of := deliveryOf()
	text, err := ring.SignDelivery(of, now)
	require.NoError(t, err)
	for range 2 { // the second time it was seen before
		read, err := ring.VerifyDelivery(text, now)
		require.NoError(t, err)
		read.ExpiresAt = read.ExpiresAt.UTC()
		require.Equal(t, of, read)
		_, err = ring.VerifyDelivery(text, now.Add(10*time.Minute+time.Second))
		require.True(t, fault.Is(err, fault.TokenExpired), "%v", err)
		_, err = ring.VerifyDelivery(text, now.Add(-2*time.Minute))
		require.True(t, fault.Is(err, fault.Unauthenticated), "%v", err)
	}
	of.ExpiresAt = now.Add(10*time.Minute + time.Second)
	_, err = ring.SignDelivery(of, now)
	require.ErrorContains(t, err, "is more than 10m0s")
}

func TestADeliveryTokenAndOneForTheAPIAreNeverTakenForEachOther(t *testing.T) {
	t.Parallel()
	ring := newRing(t)
	delivery, err := ring.SignDelivery(deliveryOf(), now)
	require.NoError(t, err)
	api, err := ring.Sign(claimsOf(), now)
	require.NoError(t, err)
	pull, err := ring.SignPull(token.Pull{Registry: "app-platform-deliveries", Repository: "a",
		Subject: ids.New(ids.NodeTask), ExpiresAt: now.Add(time.Minute)}, now)
	require.NoError(t, err)
	_, err = ring.VerifyDelivery(delivery, now)
	require.NoError(t, err)
	_, err = ring.Verify(api, now)
	require.NoError(t, err)
	for range 2 { // also once both were seen
		_, err = ring.Verify(delivery, now)
		require.True(t, fault.Is(err, fault.Unauthenticated), "%v", err)
		for _, text := range []string{api, pull, "", "x.y.z"} {
			_, err = ring.VerifyDelivery(text, now)
			require.True(t, fault.Is(err, fault.Unauthenticated), "%v", err)
		}
	}
}

func TestAForgedDeliveryTokenIsRefused(t *testing.T) {
	t.Parallel()
	ring, other := newRing(t), newRing(t)
	foreign, err := other.SignDelivery(deliveryOf(), now)
	require.NoError(t, err)
	_, err = ring.VerifyDelivery(foreign, now)
	require.True(t, fault.Is(err, fault.Unauthenticated), "signed by another platform: %v", err)

	header, _, sign := honest(ring)
	header["typ"] = "delivery+jwt"
	whole := func() map[string]any {
		return map[string]any{"iss": issuer, "aud": "app-platform-deliveries", "sub": string(ids.New(ids.NodeTask)),
			"nod": string(ids.New(ids.Node)),
			"art": string(ids.New(ids.Artifact)), "iat": now.Unix(), "exp": now.Add(time.Minute).Unix()}
	}
	_, err = ring.VerifyDelivery(forge(header, whole(), sign), now)
	require.NoError(t, err)
	for field, value := range map[string]any{
		"aud": token.Audience, "iss": "https://else.test", "sub": string(ids.New(ids.Operation)),
		"nod": string(ids.New(ids.Member)),
		"art": "", "exp": nil,
	} {
		claims := whole()
		claims[field] = value
		if value == nil {
			delete(claims, field)
		}
		_, err = ring.VerifyDelivery(forge(header, claims, sign), now)
		require.True(t, fault.Is(err, fault.Unauthenticated), "%s: %v", field, err)
	}
	header["typ"] = "at+jwt"
	_, err = ring.VerifyDelivery(forge(header, whole(), sign), now)
	require.True(t, fault.Is(err, fault.Unauthenticated), "of another sort: %v", err)
}
