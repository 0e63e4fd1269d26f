package token

import (
	"crypto/sha256"
	"encoding/binary"
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
)

func TestFourThousandTokensAreRememberedAndThenNoneOfThem(t *testing.T) {
	t.Parallel()
	var s seen[int]
	sum := func(n int) (key [sha256.Size]byte) {
		binary.BigEndian.PutUint64(key[:], uint64(n)) //#nosec G115 -- a small number
		return key
	}
	for n := range 4096 {
		s.remember(sum(n), sighting[int]{said: n})
	}
	for n := range 4096 {
		known, ok := s.recall(sum(n))
		require.True(t, ok, "%d", n)
		require.Equal(t, n, known.said)
	}
	s.remember(sum(4096), sighting[int]{said: 4096})
	require.Len(t, s.tokens, 1, "memory is bounded")
	_, ok := s.recall(sum(4096))
	require.True(t, ok)
}

func TestASecretWhoseIDIsNotOneIsRefusedThoughItsChecksumFits(t *testing.T) {
	t.Parallel()
	for _, suffix := range []string{strings.Repeat("z", 26), strings.Repeat("0", 25) + "U", strings.Repeat("!", 26)} {
		body := "gpu_ses_" + suffix + "_" + strings.Repeat("0", 43)
		secret, err := ParseSecret(body + checksum(body))
		require.True(t, fault.Is(err, fault.Unauthenticated), "%v", err)
		require.Zero(t, secret)
	}
	for _, start := range []string{"gpx_ses_", "gpu_xyz_", "gpu__"} {
		body := start + "01k" + strings.Repeat("0", 23) + "_" + strings.Repeat("0", 43)
		_, err := ParseSecret(body + checksum(body))
		require.True(t, fault.Is(err, fault.Unauthenticated), "%v", err)
	}
}

func TestNumbersAreWrittenInBase62(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "000", 9: "009", 10: "00A", 35: "00Z", 36: "00a", 61: "00z",
		62: "010", 62*62*62 - 1: "zzz"} {
		require.Equal(t, want, base62(big.NewInt(n), 3))
	}
}
