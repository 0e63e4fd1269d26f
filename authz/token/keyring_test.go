package token_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
)

// ripen makes a folder's young key old enough to sign, as time would.
func ripen(t *testing.T, dir, id string) {
	t.Helper()
	keys, err := token.ListKeys(dir)
	require.NoError(t, err)
	for _, key := range keys {
		if key.ID == id {
			older := key.MadeAt.Add(-time.Hour).UTC().Format("20060102T150405") + ".pem"
			require.NoError(t, os.Rename(filepath.Join(dir, key.File), filepath.Join(dir, older)))
			return
		}
	}
	require.Fail(t, "no such key", id)
}

func TestANewKeyVerifiesBeforeItSignsAndNoTokenIsLost(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	newKey(t, dir, "20260101T000000.pem")
	signing, err := token.LoadKeyring(dir, issuer)
	require.NoError(t, err)
	other, err := token.LoadKeyring(dir, issuer)
	require.NoError(t, err)
	before, err := signing.Sign(claimsOf(), now)
	require.NoError(t, err)

	made, err := token.AddKey(dir)
	require.NoError(t, err)
	require.NoError(t, signing.Reload())
	_, signs := signing.SigningKey()
	require.NotEqual(t, made, signs, "others have not heard of the new key yet")
	published, err := signing.Public()
	require.NoError(t, err)
	require.Contains(t, string(published), made, "it is published at once")

	ripen(t, dir, made)
	require.NoError(t, signing.Reload())
	_, signs = signing.SigningKey()
	require.Equal(t, made, signs)
	after, err := signing.Sign(claimsOf(), now)
	require.NoError(t, err)
	_, err = other.Verify(after, now)
	require.True(t, fault.Is(err, fault.Unauthenticated), "it has not reloaded: this is what the wait is for")
	require.NoError(t, other.Reload())
	for _, ring := range []*token.Keyring{signing, other} {
		for _, text := range []string{before, after} {
			_, err = ring.Verify(text, now)
			require.NoError(t, err, "old tokens hold until they end")
		}
	}
}

func TestAFolderThatCannotBeReadLeavesTheRingAsItIs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ring, err := token.LoadKeyring(dir, issuer)
	require.NoError(t, err)
	text, err := ring.Sign(claimsOf(), now)
	require.NoError(t, err)
	newKeyFile := filepath.Join(dir, "20990101T000000.pem")
	require.NoError(t, os.WriteFile(newKeyFile, []byte("half a key"), 0o600))
	require.ErrorContains(t, ring.Reload(), "20990101T000000.pem")
	_, err = ring.Verify(text, now)
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(dir))
	require.Error(t, ring.Reload())
	_, err = ring.Verify(text, now)
	require.NoError(t, err)
}

func TestAKeyIsMadeOnlyInAFolderOfServers(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "mistyped")
	_, err := token.AddKey(dir)
	require.ErrorContains(t, err, "there is no folder "+dir+": name the --keys-dir of the servers")
	_, err = token.ListKeys(dir)
	require.ErrorContains(t, err, "there is no folder "+dir+": name the --keys-dir of the servers")
	require.NoDirExists(t, dir)
}

func TestOneOfTwoYoungKeysSignsAndNoneIsOverwritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, err := token.AddKey(dir)
	require.NoError(t, err)
	second, err := token.AddKey(dir)
	require.NoError(t, err)
	require.NotEqual(t, first, second)
	keys, err := token.ListKeys(dir)
	require.NoError(t, err)
	require.Len(t, keys, 2)
	require.Equal(t, []string{second, first}, []string{keys[0].ID, keys[1].ID}, "newest first")
	require.False(t, keys[0].Signs)
	require.True(t, keys[1].Signs, "the older: it has been known for longer")
	for _, key := range keys {
		info, err := os.Stat(filepath.Join(dir, key.File))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	}
}

func TestAnExchangedTokenSpeaksForItsKeyAndNothingElse(t *testing.T) {
	t.Parallel()
	ring := newRing(t)
	key := ids.New(ids.ServiceKey)
	text, err := ring.Sign(token.Claims{ServiceKey: key, ExpiresAt: now.Add(time.Hour)}, now)
	require.NoError(t, err)
	read, err := ring.Verify(text, now)
	require.NoError(t, err)
	require.Equal(t, key, read.ServiceKey)
	for name, claims := range map[string]token.Claims{
		"an operation besides": {ServiceKey: key, Operation: ids.New(ids.Operation), ExpiresAt: now.Add(time.Hour)},
		"an instance besides":  {ServiceKey: key, Instance: ids.New(ids.Instance), ExpiresAt: now.Add(time.Hour)},
		"no key's id":          {ServiceKey: ids.New(ids.Session), ExpiresAt: now.Add(time.Hour)},
		"nothing at all":       {ExpiresAt: now.Add(time.Hour)},
	} {
		text, err := ring.Sign(claims, now)
		require.NoError(t, err)
		_, err = ring.Verify(text, now)
		require.True(t, fault.Is(err, fault.Unauthenticated), "%s: %v", name, err)
	}
}

func TestAnOperatorsTokenSpeaksForTheAccountOnOneInstance(t *testing.T) {
	t.Parallel()
	ring := newRing(t)
	whole := token.Claims{Operator: ids.New(ids.ServiceAccount), Instance: ids.New(ids.Instance),
		ServiceKey: ids.New(ids.ServiceKey), Keys: []string{"project.read"}, ExpiresAt: now.Add(time.Hour)}
	text, err := ring.Sign(whole, now)
	require.NoError(t, err)
	read, err := ring.Verify(text, now)
	require.NoError(t, err)
	whole.ID, whole.ExpiresAt, read.ExpiresAt = read.ID, time.Time{}, time.Time{}
	require.Equal(t, whole, read)
	for name, change := range map[string]func(*token.Claims){
		"an operation besides": func(c *token.Claims) { c.Operation = ids.New(ids.Operation) },
		"no account's id":      func(c *token.Claims) { c.Operator = ids.New(ids.User) },
		"no instance":          func(c *token.Claims) { c.Instance = "" },
		"no instance's id":     func(c *token.Claims) { c.Instance = ids.New(ids.Allocation) },
		"no key":               func(c *token.Claims) { c.ServiceKey = "" },
		"no key's id":          func(c *token.Claims) { c.ServiceKey = ids.New(ids.Session) },
	} {
		claims := whole
		claims.ExpiresAt = now.Add(time.Hour)
		change(&claims)
		text, err := ring.Sign(claims, now)
		require.NoError(t, err)
		_, err = ring.Verify(text, now)
		require.True(t, fault.Is(err, fault.Unauthenticated), "%s: %v", name, err)
	}
}

func TestATokenOfAnotherTypeIsNoCredential(t *testing.T) {
	t.Parallel()
	ring := newRing(t)
	header, claims, sign := honest(ring)
	for _, typ := range []any{"JWT", "", nil, 7, "pull+jwt"} {
		header["typ"] = typ
		if typ == nil {
			delete(header, "typ")
		}
		_, err := ring.Verify(forge(header, claims, sign), now)
		require.True(t, fault.Is(err, fault.Unauthenticated), "%v: %v", typ, err)
	}
}

func TestATokenThatWasSeenIsJudgedAnewAndSharesNothing(t *testing.T) {
	t.Parallel()
	ring, err := token.NewKeyring("https://platform.test")
	require.NoError(t, err)
	now := time.Now()
	text, err := ring.Sign(token.Claims{Instance: ids.New(ids.Instance), Keys: []string{"task.run"},
		ExpiresAt: now.Add(time.Minute)}, now)
	require.NoError(t, err)
	first, err := ring.Verify(text, now)
	require.NoError(t, err)
	first.Keys[0] = "node.enrol"
	again, err := ring.Verify(text, now)
	require.NoError(t, err)
	require.Equal(t, []string{"task.run"}, again.Keys)
	_, err = ring.Verify(text, now.Add(2*time.Minute))
	require.True(t, fault.Is(err, fault.TokenExpired), "%v", err)
	_, err = ring.Verify(text[:len(text)-4]+"AAAA", now)
	require.True(t, fault.Is(err, fault.Unauthenticated), "%v", err)
}
