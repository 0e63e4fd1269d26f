package volume_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/idrange"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/loop"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/spaces"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/thread"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/volume"
)

const (
	mib = 1 << 20
	// first is what a member's ids begin with on the node.
	first    = 1 << 30
	patience = 60 * time.Second
)

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("volumes need root")
	}
}

// ground is a store with a storage of each kind.
type ground struct {
	*volume.Store
	t             *testing.T
	shared, local string
	users         string
}

func newGround(t *testing.T) *ground {
	t.Helper()
	needRoot(t)
	g := &ground{t: t, shared: filepath.Join(t.TempDir(), "shared"), local: filepath.Join(t.TempDir(), "local")}
	g.Store = g.again()
	space, err := spaces.Open(idrange.Range{First: first}, false)
	require.NoError(t, err)
	t.Cleanup(space.Close)
	g.users = space.Path("user")
	for _, state := range g.Storages() {
		require.Empty(t, state.Reason, state.Name)
		require.Positive(t, state.FreeBytes)
	}
	return g
}

// again is the store of an agent that has just started.
func (g *ground) again() *volume.Store {
	g.t.Helper()
	storages, err := volume.Parse([]string{"files=shared:" + g.shared, "disk=local:" + g.local})
	require.NoError(g.t, err)
	return volume.Open(g.t.Context(), storages, slog.New(slog.DiscardHandler))
}

func disk(id string, size int64) volume.Volume {
	return volume.Volume{ID: id, Storage: "disk", Path: "/data", SizeBytes: size}
}

func files(id string) volume.Volume {
	return volume.Volume{ID: id, Storage: "files", Path: "/data", SizeBytes: 1 << 30}
}

func (g *ground) made(v volume.Volume) {
	g.t.Helper()
	require.NoError(g.t, g.Make(g.t.Context(), []volume.Volume{v}))
}

// mounted is a mount of the volume, as a member has it; what is done in it is done by root of the node.
func (g *ground) mounted(v volume.Volume) *os.File {
	g.t.Helper()
	tree, err := g.Mount(v, g.users)
	require.NoError(g.t, err)
	return tree
}

// in opens a file of the mount as the user of a member that has the number id there.
func in(t *testing.T, tree *os.File, id int, name string, flags int) *os.File {
	t.Helper()
	file := -1
	err := thread.Apart(func() (err error) {
		if err = errors.Join(unix.Setfsgid(first+id), unix.Setfsuid(first+id)); err == nil {
			file, err = unix.Openat(int(tree.Fd()), name, flags|unix.O_CLOEXEC, 0o644)
		}
		return err
	})
	require.NoError(t, err, name)
	return os.NewFile(uintptr(file), name)
}

// asMember does something without any right of root's.
func asMember(do func() error) error {
	return thread.Apart(func() error {
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		if err := unix.Capset(&header, &make([]unix.CapUserData, 2)[0]); err != nil {
			return err
		}
		return do()
	})
}

// devices counts the loop devices of a volume.
func (g *ground) devices(id string) int {
	g.t.Helper()
	image, err := os.Open(filepath.Join(g.local, id+".img"))
	require.NoError(g.t, err)
	defer image.Close()
	all, err := loop.All(image)
	require.NoError(g.t, err)
	for _, one := range all {
		require.NoError(g.t, one.Close())
	}
	return len(all)
}

func (g *ground) detached(id string) {
	g.t.Helper()
	require.Eventually(g.t, func() bool { return g.devices(id) == 0 }, patience, 10*time.Millisecond,
		"%s has a device", id)
}

func TestStoragesAreRefusedThatCannotBeMeant(t *testing.T) {
	t.Parallel()
	for given, words := range map[string]string{
		"disk":            "has the kind",
		"Disk=local:/a":   "is not NAME=KIND:DIR",
		"../x=local:/a":   "is not NAME=KIND:DIR",
		"disk=nfs:/a":     "not shared or local",
		"disk=local:":     "not an absolute, clean path",
		"disk=local:a":    "not an absolute, clean path",
		"disk=local:/":    "not an absolute, clean path",
		"disk=local:/a/.": "not an absolute, clean path",
	} {
		_, err := volume.Parse([]string{given})
		require.ErrorContains(t, err, words, given)
	}
	_, err := volume.Parse([]string{"a=local:/a", "a=local:/b"})
	require.ErrorContains(t, err, "an earlier one")
	_, err = volume.Parse([]string{"a=local:/a", "b=shared:/a"})
	require.ErrorContains(t, err, "an earlier one")
	_, err = volume.Parse(make([]string, 17))
	require.ErrorContains(t, err, "more than 16")
}

func TestAVolumeIsRefusedBeforeAPathIsMadeOfIt(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	good := volume.Volume{ID: "vol_a", Storage: "disk", Path: "/home"}
	require.NoError(t, g.Refuses([]volume.Volume{good}))
	for words, change := range map[string]func(*volume.Volume){
		`"vol_../x": it is not an id`:              func(v *volume.Volume) { v.ID = "vol_../x" },
		`"mem_a": it is not an id`:                 func(v *volume.Volume) { v.ID = "mem_a" },
		"has no storage with that name":            func(v *volume.Volume) { v.Storage = "tape" },
		`"home" is not an absolute, clean path`:    func(v *volume.Volume) { v.Path = "home" },
		`"/" is not an absolute, clean path`:       func(v *volume.Volume) { v.Path = "/" },
		`"/a/../b" is not an absolute, clean path`: func(v *volume.Volume) { v.Path = "/a/../b" },
		"/proc is reserved for the node":           func(v *volume.Volume) { v.Path = "/proc/sys" },
		"/dev is reserved for the node":            func(v *volume.Volume) { v.Path = "/dev" },
		"/run is reserved for the node":            func(v *volume.Volume) { v.Path = "/run/gpuaas" },
		"/tmp is reserved for the node":            func(v *volume.Volume) { v.Path = "/tmp/x" },
		"/scratch is reserved for the node":        func(v *volume.Volume) { v.Path = "/scratch" },
		"/.member is reserved for the node":        func(v *volume.Volume) { v.Path = "/.member/state" },
	} {
		bad := good
		change(&bad)
		err := g.Refuses([]volume.Volume{bad})
		require.ErrorContains(t, err, words)
		require.ErrorContains(t, err, "volume ")
	}
	inner := volume.Volume{ID: "vol_b", Storage: "disk", Path: "/home/b"}
	require.ErrorContains(t, g.Refuses([]volume.Volume{good, inner}), "overlap")
	require.ErrorContains(t, g.Refuses([]volume.Volume{inner, good}), "overlap")
	var none *volume.Store
	require.ErrorContains(t, none.Refuses([]volume.Volume{good}), "started without storage")
	left, err := os.ReadDir(g.local)
	require.NoError(t, err)
	require.Empty(t, left, "nothing was made")
}

func TestALocalVolumeIsReservedBoundedAndGrows(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	v := disk("vol_bound", 32*mib)
	g.made(v)
	image, err := os.Stat(filepath.Join(g.local, "vol_bound.img"))
	require.NoError(t, err)
	require.Equal(t, int64(32*mib), image.Size())
	require.GreaterOrEqual(t, image.Sys().(*unixStat).Blocks*512, int64(31*mib), "the disk is taken at once")

	tree := g.mounted(v)
	names, err := os.ReadDir("/proc/self/fd/" + itoa(in(t, tree, 0, ".", unix.O_DIRECTORY)))
	require.NoError(t, err)
	require.Empty(t, names, "a new volume is empty")
	big := in(t, tree, 0, "big", unix.O_CREAT|unix.O_WRONLY)
	fill := func() (written int) {
		for {
			n, err := big.Write(make([]byte, mib))
			written += n
			if err != nil {
				require.ErrorIs(t, err, unix.ENOSPC)
				return written
			}
		}
	}
	filled := fill()
	require.Less(t, filled, 32*mib)
	require.Greater(t, filled, 16*mib)
	before, err := g.Measure(t.Context(), v)
	require.NoError(t, err)
	require.Equal(t, int64(32*mib), before.SizeBytes)
	require.GreaterOrEqual(t, before.UsedBytes, int64(filled))

	v.SizeBytes = 64 * mib
	now := int64(64 * mib)
	if err := g.Grow(t.Context(), v); errors.Is(err, unix.EPERM) || errors.Is(err, volume.ErrBusy) {
		require.ErrorContains(t, err, "lacks CAP_SYS_RESOURCE")
		t.Log("this machine lets nobody grow a mounted file system")
		require.Zero(t, fill())
		now = 32 * mib
	} else {
		require.NoError(t, err, "while it is mounted and full")
		require.Greater(t, fill(), 24*mib)
	}
	after, err := g.Measure(t.Context(), v)
	require.NoError(t, err)
	require.Equal(t, now, after.SizeBytes)
	v.SizeBytes = 32 * mib
	require.NoError(t, g.Grow(t.Context(), v), "an older wish changes nothing")
	require.Equal(t, 1, g.devices("vol_bound"))
	require.NoError(t, big.Close())
	require.NoError(t, tree.Close())
	g.detached("vol_bound")

	v.SizeBytes = 96 * mib
	require.NoError(t, g.Grow(t.Context(), v), "while nothing has it")
	g.detached("vol_bound")
	idle, err := g.Measure(t.Context(), v)
	require.NoError(t, err)
	require.Equal(t, int64(96*mib), idle.SizeBytes)
	g.detached("vol_bound")
	require.GreaterOrEqual(t, idle.UsedBytes, int64(filled), "what was there is still there")
	tree = g.mounted(v)
	big = in(t, tree, 0, "big", unix.O_APPEND|unix.O_WRONLY)
	require.Greater(t, fill(), 24*mib)
	require.NoError(t, errors.Join(big.Close(), tree.Close()))
	require.NoError(t, g.Delete(t.Context(), v))
	require.ErrorContains(t, g.Make(t.Context(), []volume.Volume{v}), "it was deleted", "ids never come back")
	require.NoFileExists(t, filepath.Join(g.local, "vol_bound.img"))
	err = g.Make(t.Context(), []volume.Volume{disk("vol_vast", 1<<60)})
	require.ErrorContains(t, err, "volume vol_vast of storage disk: it needs")
}
