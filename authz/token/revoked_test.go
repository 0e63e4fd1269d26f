package token_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/fault"
)

// refusedBecause requires UNAUTHENTICATED for one cause, and none other.
func refusedBecause(t *testing.T, err error, cause string) {
	t.Helper()
	require.True(t, fault.Is(err, fault.Unauthenticated), "%v", err)
	require.ErrorContains(t, err, cause)
}

func TestATokenThatWasSeenEndsWithItsKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	newKey(t, dir, "20260101T000000.pem")
	ring, err := token.LoadKeyring(dir, issuer)
	require.NoError(t, err)
	_, old := ring.SigningKey()
	api, err := ring.Sign(claimsOf(), now)
	require.NoError(t, err)
	delivery, err := ring.SignDelivery(deliveryOf(), now)
	require.NoError(t, err)

	newKey(t, dir, "20260601T000000.pem")
	require.NoError(t, ring.Reload())
	for range 2 { // the second time the ring remembers both
		_, err = ring.Verify(api, now)
		require.NoError(t, err)
		_, err = ring.VerifyDelivery(delivery, now)
		require.NoError(t, err)
	}

	require.NoError(t, os.Remove(filepath.Join(dir, "20260101T000000.pem")))
	require.NoError(t, ring.Reload())
	published, err := ring.Public()
	require.NoError(t, err)
	require.NotContains(t, string(published), old)
	claims, err := ring.Verify(api, now)
	refusedBecause(t, err, "signed by an unknown key")
	require.Zero(t, claims)
	read, err := ring.VerifyDelivery(delivery, now.Add(time.Second))
	refusedBecause(t, err, "signed by an unknown key")
	require.Zero(t, read)
}

func TestEverySecretHasRandomBytesOfItsOwn(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 100 {
		text, _ := token.Mint(token.Session)
		random := strings.Split(text, "_")[3][:43]
		require.False(t, seen[random], "the random part does not differ, only the id does")
		seen[random] = true
	}
}

func TestASecretThatLacksPartsIsRefusedAndNothingElse(t *testing.T) {
	t.Parallel()
	text, _ := token.Mint(token.Key)
	parts := strings.Split(text, "_")
	for _, wrong := range []string{
		"", "_", "gpu", "gpu_", "gpu_x", "gpu_sa", "gpu_sa_", "gpu_sa_" + parts[2], "gpu_sa_" + parts[2] + "_",
		"____", "x_y_z", "w_x_y_z", text + "_", text + "_x", "_" + text, strings.Join(parts[1:], "_"),
	} {
		secret, err := token.ParseSecret(wrong)
		refusedBecause(t, err, "the credential is malformed")
		require.Zero(t, secret)
	}
}
