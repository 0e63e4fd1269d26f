package volume_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/idrange"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/spaces"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/volume"
)

// owner is who a file of the mount belongs to, as a program that is not of a member sees it.
func owner(t *testing.T, tree *os.File, name string) int {
	t.Helper()
	var stat unix.Stat_t
	require.NoError(t, unix.Fstatat(int(tree.Fd()), name, &stat, unix.AT_SYMLINK_NOFOLLOW))
	return int(stat.Uid)
}

func TestOwnersOnAVolumeAreTheMembersOwnWhateverRangeAMemberHas(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	other, err := spaces.Open(idrange.Range{First: 2 * first}, false)
	require.NoError(t, err)
	t.Cleanup(other.Close)
	for _, v := range []volume.Volume{files("vol_own"), disk("vol_own2", 32*mib)} {
		g.made(v)
		mine := g.mounted(v)
		theirs, err := g.Mount(v, other.Path("user"))
		require.NoError(t, err)
		require.Equal(t, first, owner(t, mine, "."))
		require.Equal(t, 2*first, owner(t, theirs, "."))
		file := in(t, mine, 0, "f", unix.O_CREAT|unix.O_WRONLY)
		require.NoError(t, unix.Fchown(int(file.Fd()), first+1004, first+1004))
		require.Equal(t, 2*first+1004, owner(t, theirs, "f"))
		require.NoError(t, errors.Join(file.Close(), mine.Close(), theirs.Close()))
	}
	var stat unix.Stat_t
	require.NoError(t, unix.Stat(filepath.Join(g.shared, "vol_own", "f"), &stat))
	require.Equal(t, uint32(1004), stat.Uid, "on the disk it is the member's number")
	require.NoError(t, unix.Stat(g.shared, &stat))
	require.Equal(t, uint32(0o700), stat.Mode&0o7777, "nobody of the node enters the storage")
}

func TestAMountOfAVolumeGivesNoPrivilege(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	for _, v := range []volume.Volume{files("vol_flags"), disk("vol_flags2", 32*mib)} {
		g.made(v)
		tree := g.mounted(v)
		var at unix.Statfs_t
		require.NoError(t, unix.Fstatfs(int(tree.Fd()), &at))
		require.Equal(t, int64(unix.ST_NOSUID|unix.ST_NODEV), at.Flags&(unix.ST_NOSUID|unix.ST_NODEV|unix.ST_RDONLY))
		v.ReadOnly = true
		only := g.mounted(v)
		require.NoError(t, unix.Fstatfs(int(only.Fd()), &at))
		require.NotZero(t, at.Flags&unix.ST_RDONLY)
		_, err := unix.Openat(int(only.Fd()), "new", unix.O_CREAT|unix.O_WRONLY, 0o644)
		require.ErrorIs(t, err, unix.EROFS)
		require.NoError(t, in(t, tree, 0, "new", unix.O_CREAT|unix.O_WRONLY).Close(),
			"the other mount still takes files")
		require.NoError(t, errors.Join(tree.Close(), only.Close()))
	}
}

func TestAllMountsOfAVolumeShareOneDevice(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	v := disk("vol_one", 32*mib)
	stores := []*volume.Store{g.Store, g.again(), g.again()}
	var made sync.WaitGroup
	trees := make([]*os.File, 12)
	for i := range trees {
		made.Go(func() { // agents of several processes meet over the folder
			store := stores[i%len(stores)]
			if err := store.Make(t.Context(), []volume.Volume{v}); err != nil {
				t.Error(err)
				return
			}
			tree, err := store.Mount(v, g.users)
			if err != nil {
				t.Error(err)
				return
			}
			trees[i] = tree
		})
	}
	made.Wait()
	require.False(t, t.Failed())
	require.Equal(t, 1, g.devices("vol_one"))
	require.NoError(t, in(t, trees[0], 0, "f", unix.O_CREAT|unix.O_WRONLY).Close())
	for _, tree := range trees {
		require.Equal(t, first, owner(t, tree, "f"))
		require.NoError(t, tree.Close())
	}
	g.detached("vol_one")
	entries, err := os.ReadDir(g.local)
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing half made is left")
}

func TestWhatIsHalfMadeIsNoVolumeAndIsSwept(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	half := filepath.Join(g.local, ".new-vol_half-1.img")
	require.NoError(t, os.WriteFile(half, make([]byte, mib), 0o600))
	being, err := os.Create(filepath.Join(g.local, ".new-vol_being-1"))
	require.NoError(t, err)
	defer being.Close()
	require.NoError(t, unix.Flock(int(being.Fd()), unix.LOCK_EX))
	_, err = g.Mount(disk("vol_half", 32*mib), g.users)
	require.ErrorContains(t, err, "volume vol_half of storage disk")
	require.NotContains(t, err.Error(), g.local, "who reads it is told no path of the node")
	g.again()
	require.NoFileExists(t, half)
	require.FileExists(t, being.Name(), "another agent makes it")
	require.NoError(t, g.Delete(t.Context(), disk("vol_half", 0)), "one that was never here")
	found, err := g.Measure(t.Context(), disk("vol_half", 0))
	require.NoError(t, err)
	require.Nil(t, found)

	require.NoError(t, os.WriteFile(filepath.Join(g.local, "vol_broken.img"), make([]byte, 20*mib), 0o600))
	_, err = g.Mount(disk("vol_broken", 20*mib), g.users)
	require.ErrorContains(t, err, "volume vol_broken of storage disk")
	g.detached("vol_broken")
}

func TestADeletionIsProvedAndAVolumeInUseStays(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	v := disk("vol_gone", 32*mib)
	g.made(v)
	tree := g.mounted(v)
	err := g.Delete(t.Context(), v)
	require.ErrorIs(t, err, volume.ErrBusy)
	require.ErrorContains(t, err, "loop")
	require.FileExists(t, filepath.Join(g.local, "vol_gone.img"))
	require.NoError(t, in(t, tree, 0, "f", unix.O_CREAT|unix.O_WRONLY).Close(), "it still serves")
	require.NoError(t, tree.Close())
	require.NoError(t, g.Delete(t.Context(), v))
	require.NoFileExists(t, filepath.Join(g.local, "vol_gone.img"))

	s := files("vol_gone2")
	g.made(s)
	outside := filepath.Join(t.TempDir(), "precious")
	require.NoError(t, os.WriteFile(outside, nil, 0o600))
	inside := filepath.Join(g.shared, "vol_gone2")
	require.NoError(t, os.Symlink(filepath.Dir(outside), filepath.Join(inside, "link")))
	require.NoError(t, os.MkdirAll(filepath.Join(inside, "a", "b"), 0o000))
	require.NoError(t, os.MkdirAll(filepath.Join(g.shared, ".gone-vol_gone2", "of-an-earlier-try"), 0o700))
	require.NoError(t, os.Mkdir(filepath.Join(g.shared, "vol_gone22"), 0o700))
	require.NoError(t, os.Mkdir(filepath.Join(g.shared, ".new-vol_gone2-1"), 0o700))
	_, err = g.Measure(t.Context(), s)
	require.NoError(t, err)
	require.NoError(t, g.Delete(t.Context(), s))
	entries, err := os.ReadDir(g.shared)
	require.NoError(t, err)
	require.Len(t, entries, 1, "all of it is gone, and nothing of the volume with a longer id")
	require.FileExists(t, outside, "no link was followed")
}

func TestASharedVolumeIsMeasuredByOneNode(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	if g.Storages()[0].SizeEnforced {
		t.Skip("the file system counts what its folders hold")
	}
	v := files("vol_size")
	g.made(v)
	inside := filepath.Join(g.shared, "vol_size")
	require.NoError(t, os.WriteFile(filepath.Join(inside, "f"), make([]byte, 3*mib), 0o600))
	require.NoError(t, os.Link(filepath.Join(inside, "f"), filepath.Join(inside, "again")))
	found, err := g.Measure(t.Context(), v)
	require.NoError(t, err)
	require.GreaterOrEqual(t, found.UsedBytes, int64(3*mib))
	require.Less(t, found.UsedBytes, int64(4*mib), "a file with two names counts once")
	require.Empty(t, found.Message)
	found, err = g.again().Measure(t.Context(), v)
	require.NoError(t, err)
	require.Nil(t, found, "the other node has done it")
	old := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(filepath.Join(g.shared, ".measured-vol_size"), old, old))
	found, err = g.again().Measure(t.Context(), v)
	require.NoError(t, err)
	require.NotNil(t, found)
}

// Which file systems bound a folder is found out by trying; this machine's may not.
func TestASharedVolumeIsBoundedWhereTheFileSystemHasProjectQuotas(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	if !g.Storages()[0].SizeEnforced {
		t.Skip("the file system of the tests has no project quotas")
	}
	v, beside := files("vol_project"), files("vol_project2")
	v.SizeBytes, beside.SizeBytes = 8*mib, 8*mib
	g.made(v)
	g.made(v)
	g.made(beside)
	tree := g.mounted(v)
	file := in(t, tree, 0, "f", unix.O_CREAT|unix.O_WRONLY)
	fill := func(name string) (written int) {
		big := in(t, tree, 0, name, unix.O_CREAT|unix.O_WRONLY)
		defer big.Close()
		require.ErrorIs(t, asMember(func() error {
			for {
				n, err := big.Write(make([]byte, mib/2))
				written += n
				if err != nil {
					return err
				}
			}
		}), unix.EDQUOT)
		return written
	}
	require.NoError(t, file.Close())
	require.InDelta(t, 8*mib, fill("big"), mib)
	found, err := g.Measure(t.Context(), v)
	require.NoError(t, err)
	require.InDelta(t, 8*mib, found.UsedBytes, mib)
	require.Equal(t, int64(8*mib), found.SizeBytes)
	v.SizeBytes = 16 * mib
	require.NoError(t, g.Grow(t.Context(), v))
	require.InDelta(t, 8*mib, fill("more"), mib)
	v.SizeBytes = 8 * mib
	require.NoError(t, g.Grow(t.Context(), v), "an older wish changes nothing")
	found, err = g.Measure(t.Context(), v)
	require.NoError(t, err)
	require.Equal(t, int64(16*mib), found.SizeBytes)
	found, err = g.Measure(t.Context(), beside)
	require.NoError(t, err)
	require.Less(t, found.UsedBytes, int64(mib), "the other has a project of its own")
	require.NoError(t, tree.Close())
	require.NoError(t, g.Delete(t.Context(), v))
	require.NoError(t, g.Delete(t.Context(), beside))
	entries, err := os.ReadDir(g.shared)
	require.NoError(t, err)
	require.Empty(t, entries)
}

func TestAStorageThatDoesNotServeIsNotOffered(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	require.NoError(t, unix.Mount("none", g.shared, "tmpfs", 0, "size=1m"))
	t.Cleanup(func() { _ = unix.Unmount(g.shared, unix.MNT_DETACH) })
	v := files("vol_lost")
	err := g.Make(t.Context(), []volume.Volume{v})
	require.ErrorContains(t, err, "its folder is not on the file system that it was on")
	require.True(t, g.Probe(t.Context()))
	require.Contains(t, g.Storages()[0].Reason, "its folder is not on the file system that it was on")
	require.ErrorContains(t, g.Refuses([]volume.Volume{v}), "the storage cannot be used: its folder is not on")
	require.NoDirExists(t, filepath.Join(g.shared, "vol_lost"))
	require.NoError(t, unix.Unmount(g.shared, unix.MNT_DETACH))
	require.True(t, g.Probe(t.Context()))
	require.NoError(t, g.Refuses([]volume.Volume{v}))
}
