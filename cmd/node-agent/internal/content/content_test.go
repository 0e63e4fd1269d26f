package content_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/content"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

func open(t *testing.T, dir string, limit int64) *content.Cache {
	t.Helper()
	cache, err := content.Open(dir, limit)
	require.NoError(t, err)
	return cache
}

func part(raw string) content.Part {
	return content.Part{Digest: fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(raw))), Size: int64(len(raw))}
}

func lease(t *testing.T, cache *content.Cache, parts ...content.Part) *content.Lease {
	t.Helper()
	held, err := cache.Lease(t.Context(), parts)
	require.NoError(t, err)
	return held
}

// keep brings a part into the cache and lets it go.
func keep(t *testing.T, cache *content.Cache, raw string) content.Part {
	t.Helper()
	held := lease(t, cache, part(raw))
	defer held.Release()
	bring(t, held, raw)
	return part(raw)
}

func bring(t *testing.T, held *content.Lease, raw string) {
	t.Helper()
	download, err := held.Begin(t.Context(), part(raw))
	require.NoError(t, err)
	require.NotNil(t, download)
	defer download.Close()
	longer, err := download.Copy(strings.NewReader(raw), func(int64) {})
	require.NoError(t, err)
	require.False(t, longer)
	genuine, err := download.Finish()
	require.NoError(t, err)
	require.True(t, genuine)
}

func names(t *testing.T, dir, kind string) []string {
	t.Helper()
	found, err := os.ReadDir(filepath.Join(dir, kind))
	require.NoError(t, err)
	all := []string{}
	for _, one := range found {
		all = append(all, "sha256:"+one.Name())
	}
	return all
}

func TestLeastRecentlyUsedGoesAndWhatIsLeasedStays(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cache := open(t, dir, 30)
	first, second := keep(t, cache, "0123456789"), keep(t, cache, "1123456789")
	keep(t, cache, "2123456789")
	held := lease(t, cache, second)
	lease(t, cache, first).Release() // used again, so that the third is the oldest that may go
	keep(t, cache, "3123456789")
	require.ElementsMatch(t, []string{first.Digest, second.Digest, part("3123456789").Digest}, names(t, dir, "sha256"))
	last := keep(t, cache, "4123456789-412345678")
	require.ElementsMatch(t, []string{second.Digest, last.Digest}, names(t, dir, "sha256"))
	held.Release()
}

func TestOrderOfUseSurvivesTheProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cache := open(t, dir, 100)
	first, second := keep(t, cache, "0123456789"), keep(t, cache, "1123456789")
	lease(t, cache, first).Release()
	open(t, dir, 15)
	require.Equal(t, []string{first.Digest}, names(t, dir, "sha256"), "not %s", second.Digest)
}

func TestWhatCannotEverFitIsRefusedAndWhatMayIsWaitedFor(t *testing.T) {
	t.Parallel()
	cache := open(t, t.TempDir(), 30)
	_, err := cache.Lease(t.Context(), []content.Part{part("01234567890123456789"), part("11234567890")})
	require.True(t, wire.HasCode(err, wire.CodeDiskFull), "%v", err)
	held := lease(t, cache, part("01234567890123456789"))
	waiting, give := context.WithCancelCause(t.Context())
	late := errors.New("late")
	give(late)
	_, err = cache.Lease(waiting, []content.Part{part("11234567890")})
	require.ErrorIs(t, err, late, "there is no room now")
	got := make(chan error, 1)
	go func() {
		next, err := cache.Lease(context.Background(), []content.Part{part("11234567890")})
		if err == nil {
			next.Release()
		}
		got <- err
	}()
	held.Release()
	held.Release()
	require.NoError(t, <-got)
}

func TestNonsenseIsNoPart(t *testing.T) {
	t.Parallel()
	cache := open(t, t.TempDir(), 30)
	good := part("x")
	for _, parts := range [][]content.Part{
		{{Digest: "sha256:../../etc/passwd", Size: 1}}, {{Digest: "", Size: 1}}, {{Digest: good.Digest, Size: -1}},
		{good, {Digest: good.Digest, Size: 2}},
	} {
		_, err := cache.Lease(t.Context(), parts)
		require.True(t, wire.HasCode(err, wire.CodeDigestMismatch), "%v", parts)
	}
	_, err := content.Open(t.TempDir(), 0)
	require.ErrorContains(t, err, "0 bytes")
}

func TestDownloadThatBrokeGoesOnInAnotherProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const whole = "the whole of it"
	broken := errors.New("broken")
	held := lease(t, open(t, dir, 100), part(whole))
	download, err := held.Begin(t.Context(), part(whole))
	require.NoError(t, err)
	_, err = download.Copy(io.MultiReader(strings.NewReader(whole[:6]), iotest.ErrReader(broken)), func(int64) {})
	require.ErrorIs(t, err, broken)
	download.Close()

	again := open(t, dir, 100)
	held = lease(t, again, part(whole))
	download, err = held.Begin(t.Context(), part(whole))
	require.NoError(t, err)
	require.EqualValues(t, 6, download.Offset())
	_, err = download.Copy(iotest.OneByteReader(strings.NewReader(whole[6:])), func(int64) {})
	require.NoError(t, err)
	genuine, err := download.Finish()
	require.NoError(t, err)
	require.True(t, genuine)
	download.Close()
	raw, err := held.Bytes(part(whole), 100)
	require.NoError(t, err)
	require.Equal(t, whole, string(raw))
	require.Empty(t, names(t, dir, "partial"))
}

func TestFalseBytesLeaveNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cache := open(t, dir, 100)
	held := lease(t, cache, part("right"))
	download, err := held.Begin(t.Context(), part("right"))
	require.NoError(t, err)
	longer, err := download.Copy(strings.NewReader("right and more"), func(int64) {})
	require.NoError(t, err)
	require.True(t, longer)
	require.NoError(t, download.Reset())
	_, err = download.Copy(strings.NewReader("wrong"), func(int64) {})
	require.NoError(t, err)
	genuine, err := download.Finish()
	require.NoError(t, err)
	require.False(t, genuine)
	download.Close()
	held.Release()
	require.Empty(t, names(t, dir, "partial"))
	require.Empty(t, names(t, dir, "sha256"))
}

func TestDamagedPartIsDroppedAtItsLastByte(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cache := open(t, dir, 100)
	kept := keep(t, cache, "as it was")
	path := filepath.Join(dir, "sha256", strings.TrimPrefix(kept.Digest, "sha256:"))
	require.NoError(t, os.WriteFile(path, []byte("as it iz."), 0o600))
	held := lease(t, cache, kept)
	reader, err := held.Reader(kept)
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, reader)
	require.ErrorIs(t, err, content.ErrCorrupt)
	require.NoError(t, reader.Close())
	require.NoFileExists(t, path)
	bring(t, held, "as it was")
	raw, err := held.Bytes(kept, 100)
	require.NoError(t, err)
	require.Equal(t, "as it was", string(raw))
	_, err = held.Bytes(kept, 3)
	require.ErrorContains(t, err, "at most 3")
}

func TestRubbishInTheDirectoryIsRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	kept := keep(t, open(t, dir, 100), "kept")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "sha256", "folder", "deep"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "partial", ".new-1"), []byte("x"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "partial", strings.TrimPrefix(kept.Digest, "sha256:")),
		[]byte("ke"), 0o600))
	open(t, dir, 100)
	require.Equal(t, []string{kept.Digest}, names(t, dir, "sha256"))
	require.Empty(t, names(t, dir, "partial"))
}

func TestPiecesOfADownloadAreHashedInOrder(t *testing.T) {
	t.Parallel()
	raw := string(bytes.Repeat([]byte("0123456789abcdef"), 5*content.Buffer/16)) + "tail"
	cache := open(t, t.TempDir(), 10<<20)
	keep(t, cache, raw)
}
