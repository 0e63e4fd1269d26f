package content_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/content"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

// boundless is a limit far beyond every disk of these tests, in bytes.
const boundless = 1 << 50

// now tries to lease, and gives up where it would have to wait.
func now(t *testing.T, cache *content.Cache, parts ...content.Part) (*content.Lease, error) {
	t.Helper()
	ctx, give := context.WithCancelCause(t.Context())
	give(errors.New("it has to wait"))
	return cache.Lease(ctx, parts)
}

// begun writes what an earlier process left of a part that it did not finish.
func begun(t *testing.T, dir string, of content.Part, size int64, raw string) {
	t.Helper()
	path := filepath.Join(dir, "partial", strings.TrimPrefix(of.Digest, "sha256:"))
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(raw), 0o600))
	require.NoError(t, os.Truncate(path, size)) // beyond raw it takes no space on the disk
}

func TestALeaseThatHadNoRoomHoldsNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cache := open(t, dir, 30)
	kept := keep(t, cache, "0123456789")
	held := lease(t, cache, part("the whole of it, 20."))
	_, err := now(t, cache, kept, part("another ten"))
	require.ErrorContains(t, err, "it has to wait")
	next, err := now(t, cache, part("9876543210"))
	require.NoError(t, err, "the part that was kept may go: the lease that wanted it failed")
	require.Empty(t, names(t, dir, "sha256"))
	next.Release()
	held.Release()
	all, err := now(t, cache, part("thirty bytes take the limit up"))
	require.NoError(t, err, "nothing is charged for the lease that failed")
	all.Release()
}

func TestALeaseThatTheDiskCannotHoldHoldsNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cache := open(t, dir, boundless)
	huge := part("larger than any disk")
	huge.Size = boundless / 2
	kept := keep(t, cache, "kept")
	_, err := now(t, cache, kept, huge)
	require.True(t, wire.HasCode(err, wire.CodeDiskFull), "%v", err)
	require.Equal(t, []string{kept.Digest}, names(t, dir, "sha256"),
		"what the lease itself wants is not removed for it")
	_, err = now(t, cache, huge)
	require.True(t, wire.HasCode(err, wire.CodeDiskFull), "%v", err)
	require.Empty(t, names(t, dir, "sha256"),
		"nobody holds it any more, so it goes before the node's disk is called full")
	all := part("the limit")
	all.Size = boundless - huge.Size
	_, err = now(t, cache, all, huge)
	require.True(t, wire.HasCode(err, wire.CodeDiskFull), "nothing is charged for leases that failed: %v", err)
}

func TestOnlyWhatLacksOfAPartTakesRoomOnTheDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var stat unix.Statfs_t
	require.NoError(t, unix.Statfs(dir, &stat))
	resumed := part("a part that is nearly there")
	// Sixteen gibibytes more than there is: others may free some space meanwhile.
	resumed.Size = int64(stat.Bavail)*stat.Bsize + 16<<30 // #nosec G115 -- far below the bound
	begun(t, dir, resumed, resumed.Size-1<<20, "")
	cache := open(t, dir, boundless)
	held, err := now(t, cache, resumed)
	require.NoError(t, err, "a mebibyte lacks, and there is more than that")
	held.Release()
	fresh := part("a part of which nothing is there")
	fresh.Size = resumed.Size
	_, err = now(t, cache, fresh)
	require.True(t, wire.HasCode(err, wire.CodeDiskFull), "%v", err)
}

func TestAPartialThatIsTooLongIsFetchedFromItsBeginning(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const whole = "the whole of it"
	begun(t, dir, part(whole), int64(len(whole))+1, whole)
	cache := open(t, dir, 100)
	held := lease(t, cache, part(whole))
	defer held.Release()
	download, err := held.Begin(t.Context(), part(whole))
	require.NoError(t, err)
	require.Zero(t, download.Offset())
	download.Close()
	bring(t, held, whole)
	raw, err := held.Bytes(part(whole), 100)
	require.NoError(t, err)
	require.Equal(t, whole, string(raw))
}

func TestAPartialThatIsWholeIsNotFetchedAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const whole = "the whole of it"
	begun(t, dir, part(whole), int64(len(whole)), whole)
	cache := open(t, dir, 100)
	held := lease(t, cache, part(whole))
	defer held.Release()
	download, err := held.Begin(t.Context(), part(whole))
	require.NoError(t, err)
	defer download.Close()
	require.EqualValues(t, len(whole), download.Offset())
	genuine, err := download.Finish()
	require.NoError(t, err)
	require.True(t, genuine)
}
