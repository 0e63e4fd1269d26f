package custody_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"gocloud.dev/gcerrors"
	"gocloud.dev/secrets"
	"gocloud.dev/secrets/driver"

	"github.com/gpuaas/app-platform/internal/custody"
)

const forThis = "runtime_secret|ten_a|sec_a|1"

func local(t *testing.T) *custody.Vault {
	t.Helper()
	vault, err := custody.Open(t.Context(), "", t.TempDir())
	require.NoError(t, err)
	return vault
}

func TestAValueOpensForWhatItWasSealedForAndForNothingElse(t *testing.T) {
	t.Parallel()
	vault := local(t)
	sealed, err := vault.Seal(t.Context(), []byte("canary"), forThis)
	require.NoError(t, err)
	require.NotContains(t, string(sealed), "canary")
	value, err := vault.Open(t.Context(), sealed, forThis)
	require.NoError(t, err)
	require.Equal(t, "canary", string(value))
	again, err := vault.Seal(t.Context(), []byte("canary"), forThis)
	require.NoError(t, err)
	require.NotEqual(t, sealed, again)
	for _, other := range []string{"runtime_secret|ten_b|sec_a|1", "runtime_secret|ten_a|sec_b|1",
		"runtime_secret|ten_a|sec_a|2", ""} {
		_, err := vault.Open(t.Context(), sealed, other)
		require.ErrorIs(t, err, custody.ErrRefused, other)
	}
}

func TestWhatIsDamagedDoesNotOpen(t *testing.T) {
	t.Parallel()
	vault := local(t)
	sealed, err := vault.Seal(t.Context(), []byte("canary"), forThis)
	require.NoError(t, err)
	for _, cut := range [][]byte{nil, {}, []byte("null"), []byte("{}"), sealed[:len(sealed)/2], sealed[1:],
		[]byte(strings.Repeat("x", 300<<10))} {
		_, err := vault.Open(t.Context(), cut, forThis)
		require.ErrorIs(t, err, custody.ErrRefused)
		_, _, err = vault.Rewrap(t.Context(), cut, true)
		require.ErrorIs(t, err, custody.ErrRefused)
	}
	var e map[string]any
	require.NoError(t, json.Unmarshal(sealed, &e))
	for _, field := range []string{"nonce", "text", "key"} {
		changed := map[string]any{}
		for name, value := range e {
			changed[name] = value
		}
		text := []byte(changed[field].(string))
		text[3] ^= 1 + (text[3]&1)*2 // another letter of base64
		changed[field] = string(text)
		raw, err := json.Marshal(changed)
		require.NoError(t, err)
		_, err = vault.Open(t.Context(), raw, forThis)
		require.Error(t, err, field)
		require.NotContains(t, err.Error(), "canary")
	}
}

func TestAnotherKeyOpensNothing(t *testing.T) {
	t.Parallel()
	sealed, err := local(t).Seal(t.Context(), []byte("canary"), forThis)
	require.NoError(t, err)
	_, err = local(t).Open(t.Context(), sealed, forThis)
	require.ErrorIs(t, err, custody.ErrKeeper)
}

func TestALargeValueIsRefused(t *testing.T) {
	t.Parallel()
	_, err := local(t).Seal(t.Context(), make([]byte, custody.MaxValue+1), forThis)
	require.Error(t, err)
}

func TestOneKeeperTakesOverFromAnotherWhileBothAreInTheRing(t *testing.T) {
	t.Parallel()
	dir, ctx := t.TempDir(), t.Context()
	next := "base64key://" + strings.Repeat("A", 43) + "="
	old, err := custody.Open(ctx, "", dir)
	require.NoError(t, err)
	sealed, err := old.Seal(ctx, []byte("canary"), forThis)
	require.NoError(t, err)
	both, err := custody.Open(ctx, next, dir, custody.Local)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(both.Name(), "base64key-"), both.Name())
	require.NotContains(t, both.Name(), "AAAA", "the address holds the key")
	value, err := both.Open(ctx, sealed, forThis)
	require.NoError(t, err)
	require.Equal(t, "canary", string(value))

	moved, changed, err := both.Rewrap(ctx, sealed, false)
	require.NoError(t, err)
	require.True(t, changed)
	same, changed, err := both.Rewrap(ctx, moved, false)
	require.NoError(t, err)
	require.False(t, changed)
	require.Equal(t, moved, same)
	alone, err := custody.Open(ctx, next, dir)
	require.NoError(t, err)
	value, err = alone.Open(ctx, moved, forThis)
	require.NoError(t, err)
	require.Equal(t, "canary", string(value))
	_, err = alone.Open(ctx, sealed, forThis)
	require.ErrorIs(t, err, custody.ErrKeeper)
	renewed, changed, err := alone.Rewrap(ctx, moved, true)
	require.NoError(t, err)
	require.True(t, changed)
	require.NotEqual(t, moved, renewed)
}

func TestProcessesThatBeginAtOnceEndWithOneKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	vaults := make([]*custody.Vault, 32)
	errs := make([]error, len(vaults))
	var wait sync.WaitGroup
	for i := range vaults {
		wait.Go(func() { vaults[i], errs[i] = custody.Open(t.Context(), "", dir) })
	}
	wait.Wait()
	sealed, err := vaults[0].Seal(t.Context(), []byte("canary"), forThis)
	require.NoError(t, err)
	for i, vault := range vaults {
		require.NoError(t, errs[i])
		value, err := vault.Open(t.Context(), sealed, forThis)
		require.NoError(t, err)
		require.Equal(t, "canary", string(value))
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1, "no half-written file is left")
	info, err := left[0].Info()
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

func TestABrokenKeyFileIsRefusedAndKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "custody.key")
	require.NoError(t, os.WriteFile(file, []byte("AAAA"), 0o600))
	_, err := custody.Open(t.Context(), "", dir)
	require.ErrorContains(t, err, "does not hold 32 bytes")
	kept, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "AAAA", string(kept))
}

func TestAddressesThatNameNoKeeperAreRefusedWithoutRepeatingThem(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"nonsense-s3cret", "unknown://s3cret", "base64key://s3cret"} {
		_, err := custody.Open(t.Context(), address, t.TempDir())
		require.Error(t, err, address)
		require.NotContains(t, err.Error(), "s3cret")
	}
}

// stubborn is a keeper whose client does not look at the context.
type stubborn struct{ hold chan struct{} }

func (s stubborn) Encrypt(context.Context, []byte) ([]byte, error) {
	<-s.hold
	return nil, errors.New("late")
}
func (s stubborn) Decrypt(context.Context, []byte) ([]byte, error) { panic("no such answer") }
func (stubborn) Close() error                                      { return nil }
func (stubborn) ErrorAs(error, any) bool                           { return false }
func (stubborn) ErrorCode(error) gcerrors.ErrorCode                { return gcerrors.Unknown }

var _ driver.Keeper = stubborn{}

func TestAKeeperThatHangsIsGivenUpAndHoldsABoundedNumber(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		vault := custody.New(custody.NewKeeper("stubborn", secrets.NewKeeper(stubborn{hold})))
		var wait sync.WaitGroup
		for range 40 {
			wait.Go(func() {
				_, err := vault.Seal(t.Context(), []byte("canary"), forThis)
				require.ErrorIs(t, err, custody.ErrKeeper)
				require.ErrorIs(t, err, context.DeadlineExceeded)
			})
		}
		wait.Wait()
		close(hold)
	})
}

func TestAClientThatPanicsHasFailed(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	close(hold)
	vault := custody.New(custody.NewKeeper("stubborn", secrets.NewKeeper(stubborn{hold})))
	_, err := vault.Open(t.Context(),
		[]byte(`{"keeper":"stubborn","key":"AAAA","nonce":"AAAAAAAAAAAAAAAA","text":"AAAA"}`), forThis)
	require.ErrorIs(t, err, custody.ErrKeeper)
}
