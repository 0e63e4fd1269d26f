package token_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
)

// ofLength forges a token that is exactly so many bytes long.
func ofLength(t *testing.T, length int, header, claims map[string]any, sign func([]byte) []byte) string {
	t.Helper()
	for kid := range 4 { // base64 leaves some lengths out: the header moves them
		header["x"] = strings.Repeat("x", kid)
		for pad := length * 3 / 4; pad > length/2; pad-- {
			claims["pad"] = strings.Repeat("x", pad)
			if len(segment(header))+len(segment(claims))+2+86 == length {
				return forge(header, claims, sign)
			}
		}
	}
	require.FailNow(t, "no token has this length")
	return ""
}

func TestATokenMayBeEightKibibytesLong(t *testing.T) {
	t.Parallel()
	ring := newRing(t)
	header, claims, sign := honest(ring)
	_, err := ring.Verify(ofLength(t, 8<<10, header, claims, sign), now)
	require.NoError(t, err)
	longer := ofLength(t, 8<<10+1, header, claims, sign)
	read, err := ring.Verify(longer, now)
	require.True(t, fault.Is(err, fault.Unauthenticated), "%v", err)
	require.Zero(t, read)

	header["typ"] = "delivery+jwt"
	claims["aud"], claims["sub"] = "app-platform-deliveries", string(ids.New(ids.NodeTask))
	claims["nod"], claims["art"] = string(ids.New(ids.Node)), string(ids.New(ids.Artifact))
	_, err = ring.VerifyDelivery(ofLength(t, 8<<10, header, claims, sign), now)
	require.NoError(t, err)
	of, err := ring.VerifyDelivery(ofLength(t, 8<<10+1, header, claims, sign), now)
	require.True(t, fault.Is(err, fault.Unauthenticated), "%v", err)
	require.Zero(t, of)
}

// The process that verifies a token may have a clock that is behind that of the process that signed it. A token counts
// from a minute before it was issued, and is over to the moment.
func TestATokenCountsFromAMinuteBeforeItIsIssuedUntilItEnds(t *testing.T) {
	t.Parallel()
	ring := newRing(t)
	api, err := ring.Sign(claimsOf(), now)
	require.NoError(t, err)
	delivery, err := ring.SignDelivery(deliveryOf(), now)
	require.NoError(t, err)
	for _, c := range []struct {
		life   time.Duration
		verify func(at time.Time) error
	}{
		{time.Hour, func(at time.Time) error { _, err := ring.Verify(api, at); return err }},
		{10 * time.Minute, func(at time.Time) error { _, err := ring.VerifyDelivery(delivery, at); return err }},
	} {
		require.True(t, fault.Is(c.verify(now.Add(-time.Minute-1)), fault.Unauthenticated))
		require.NoError(t, c.verify(now.Add(-time.Minute)))
		require.NoError(t, c.verify(now.Add(c.life)))
		require.True(t, fault.Is(c.verify(now.Add(c.life+1)), fault.TokenExpired))
	}
}

func TestATokenIsRefusedForWhatIsWrongWithIt(t *testing.T) {
	t.Parallel()
	ring := newRing(t)
	header, claims, sign := honest(ring)
	good := forge(header, claims, sign)
	delivery, err := ring.SignDelivery(deliveryOf(), now)
	require.NoError(t, err)
	for text, cause := range map[string]string{
		"x.y.z": "base64", good[:len(good)-8] + "AAAAAAAA": "error in cryptographic primitive",
		delivery: "a token of another sort",
	} {
		for range 2 { // nothing of it is remembered
			_, err := ring.Verify(text, now)
			refusedBecause(t, err, cause)
		}
	}
	for text, cause := range map[string]string{
		"x.y.z": "base64", delivery[:len(delivery)-8] + "AAAAAAAA": "error in cryptographic primitive",
		good: "a token of another sort",
	} {
		for range 2 {
			_, err := ring.VerifyDelivery(text, now)
			refusedBecause(t, err, cause)
		}
	}
}

func TestAPullTokenLivesForAQuarterOfAnHour(t *testing.T) {
	t.Parallel()
	ring := newRing(t)
	pull := token.Pull{Registry: "r", Repository: "a", Subject: ids.New(ids.Node), ExpiresAt: now.Add(15 * time.Minute)}
	_, err := ring.SignPull(pull, now)
	require.NoError(t, err)
	pull.ExpiresAt = pull.ExpiresAt.Add(1)
	text, err := ring.SignPull(pull, now)
	require.ErrorContains(t, err, "a life of 15m0.000000001s is more than 15m0s")
	require.Empty(t, text)
}

// minted is a secret of an earlier program, of no installation: what was given out must be read for as long as it
// lives.
const minted = "gpu_ses_01m8213c6sfgtazcsyw84jfxn4_XWL5sflfhmGNCg7MZzMSwEYNvuDMFIKiYuEOaWqbM7w2lEcLn"

func TestASecretOfAnEarlierProgramIsRead(t *testing.T) {
	t.Parallel()
	secret, err := token.ParseSecret(minted)
	require.NoError(t, err)
	require.Equal(t, token.Session, secret.Kind)
	require.Equal(t, ids.Session, secret.ID.Kind())
	form := regexp.MustCompile(`^gpu_[a-z]{2,3}_[0-9a-z]{26}_[0-9A-Za-z]{49}$`)
	require.Regexp(t, form, minted)
	text, _ := token.Mint(token.Key)
	require.Regexp(t, form, text)
}

func TestAFolderHasAHundredKeysAtMost(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "keys")
	ring, err := token.LoadKeyring(dir, issuer)
	require.NoError(t, err)
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	_, id := ring.SigningKey()
	require.Len(t, id, 16, "twelve bytes of the key's hash")
	for i := range 99 {
		newKey(t, dir, fmt.Sprintf("2026%04dT000000.pem", i))
	}
	require.NoError(t, ring.Reload())
	newKey(t, dir, "one-more.pem")
	require.EqualError(t, ring.Reload(), "signing keys: the folder has 101 keys, and may have 1 to 100")
}

func TestAKeyOfAnOwnNameIsAsOldAsItsFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	newKey(t, dir, "primary.pem")
	require.NoError(t, os.Chtimes(filepath.Join(dir, "primary.pem"), now, now))
	keys, err := token.ListKeys(dir)
	require.NoError(t, err)
	require.Len(t, keys, 1)
	require.True(t, now.Equal(keys[0].MadeAt), "%s", keys[0].MadeAt)
	require.Equal(t, "primary.pem", keys[0].File)
	require.NoError(t, newRing(t).Reload(), "keys that are nowhere stored stay")
}

func TestKeysThatCannotBeReadOrWrittenAreAnError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := token.LoadKeyring(filepath.Join(file, "keys"), issuer)
	require.ErrorContains(t, err, "signing keys: mkdir ")
	for _, place := range []string{filepath.Join(file, "keys"), filepath.Join(dir, "x["), "/proc/self"} {
		ring, err := token.LoadKeyring(place, issuer)
		require.ErrorContains(t, err, "signing keys: ", place)
		require.Nil(t, ring, place)
		found, err := token.ListKeys(place)
		require.ErrorContains(t, err, "signing keys: ", place)
		require.Nil(t, found, place)
	}
	_, err = token.ListKeys(filepath.Join(dir, "x["))
	require.ErrorContains(t, err, "syntax error in pattern")
	id, err := token.AddKey(filepath.Join(dir, "gone"))
	require.ErrorContains(t, err, "signing keys: ")
	require.Empty(t, id)
	id, err = token.AddKey("/proc/self") // a folder in which no one creates a file
	require.ErrorContains(t, err, "signing keys: open /proc/self/")
	require.Empty(t, id)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "folder", "20260101T000000.pem"), 0o700))
	_, err = token.LoadKeyring(filepath.Join(dir, "folder"), issuer)
	require.ErrorContains(t, err, "signing keys: read ")
}
