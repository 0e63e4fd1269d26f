package redteam

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/volume"
)

// The attacker's volumes: one of its own, one that it only reads; and the victim's.
const (
	ownVolume, readVolume, victimVolume = "vol_attacker", "vol_reading", "vol_victim"
	ownPath, readPath                   = "/data/own", "/data/reading"
)

// shelves opens the node's storages.
func (g *ground) shelves() *volume.Store {
	g.t.Helper()
	g.shared, g.local = g.t.TempDir(), g.t.TempDir()
	storages, err := volume.Parse([]string{"files=shared:" + g.shared, "disk=local:" + g.local})
	require.NoError(g.t, err)
	store := volume.Open(g.t.Context(), storages, g.log)
	for _, state := range store.Storages() {
		require.Empty(g.t, state.Reason)
	}
	return store
}

func attackersVolumes() []volume.Volume {
	return []volume.Volume{
		{ID: ownVolume, Storage: "disk", Path: ownPath, SizeBytes: 32 << 20},
		{ID: readVolume, Storage: "files", Path: readPath, ReadOnly: true},
	}
}

func victimsVolumes() []volume.Volume {
	return []volume.Volume{
		{ID: victimVolume, Storage: "disk", Path: ownPath, SizeBytes: 32 << 20},
		{ID: victimVolume + "2", Storage: "files", Path: readPath},
	}
}

// plant leaves devices of the node on a volume of the attacker's.
func (g *ground) plant() {
	g.t.Helper()
	at := filepath.Join(g.shared, readVolume)
	require.NoError(g.t, unix.Mknod(filepath.Join(at, "planted-block"), unix.S_IFBLK|0o666, int(unix.Mkdev(7, 7))))
	require.NoError(g.t, unix.Mknod(filepath.Join(at, "planted-char"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))))
	for _, name := range []string{"planted-block", "planted-char"} {
		require.NoError(g.t, os.Chmod(filepath.Join(at, name), 0o666)) // #nosec G302 -- a bait
	}
}

// volumes are tries at the node, and at others, by volumes.
func volumes(t target) []try {
	locked := []syscall.Errno{unix.EINVAL, unix.EPERM}
	all := []try{
		{"take the volume off", func(target) error { return unix.Unmount(ownPath, unix.MNT_DETACH) }, denied, locked},
		both("honour set-id bits of the volume", denied, remounts(ownPath, unix.MS_NODEV)),
		both("honour device nodes of the volume", denied, remounts(ownPath, unix.MS_NOSUID)),
		both("write a volume that is to be read", denied, remounts(readPath, unix.MS_NOSUID|unix.MS_NODEV)),
		both("write it after that", []syscall.Errno{unix.EROFS}, opens(readPath+"/new", os.O_CREATE|os.O_WRONLY)),
		both("mknod on the volume", denied, makes(unix.S_IFCHR, 1, 3, ownPath)),
		both("open a block device that lies on the volume", []syscall.Errno{unix.EACCES, unix.EPERM},
			opens(readPath+"/planted-block", os.O_RDONLY)),
		both("open a character device that lies on the volume", []syscall.Errno{unix.EACCES, unix.EPERM},
			opens(readPath+"/planted-char", os.O_RDONLY)),
		both("be root by a set-id program on the volume", denied, func(target) error { return elevated(ownPath) }),
		both("keep a file of the volume from being deleted", denied, func(target) error { return immovable(ownPath) }),
		both("map the volume's ids anew", append(denied, unix.ENOSYS), func(target) error { return remaps(ownPath) }),
		both("mount the volume's device", append(denied, unix.ENOENT, unix.EACCES), func(target) error {
			return unix.Mount("/dev/loop0", "/mnt", "ext4", 0, "")
		}),
	}
	for _, path := range t.Volumes {
		all = append(all, both("the node's "+path, append(absent, unix.EACCES), func(target) error {
			return reads(path)
		}))
	}
	return append(all, both("see another's volume in the kernel's tables", absent, func(target) error {
		return named(victimVolume)
	}))
}

// remounts drops the flags of a mount that are not named.
func remounts(path string, flags uintptr) func(target) error {
	return func(target) error { return unix.Mount("", path, "", unix.MS_REMOUNT|unix.MS_BIND|flags, "") }
}

// elevated is EPERM unless another user becomes root by a program with a set-id bit.
func elevated(dir string) error {
	program := filepath.Join(dir, "id")
	if err := ran("sh", "-c", "cp $(command -v id) "+program+" && chmod 4755 "+program); err != nil {
		return unix.EIO
	}
	return ran("setpriv", "--reuid", "1004", "--regid", "1004", "--clear-groups", "sh", "-c",
		`test "$(`+program+` -u)" = 0`)
}

// immovable creates a file that cannot be deleted.
func immovable(dir string) error {
	file, err := os.Create(filepath.Join(dir, "immovable"))
	if err != nil {
		return unix.EIO
	}
	defer file.Close()
	const immutable = 0x10
	flags := immutable
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, file.Fd(), unix.FS_IOC_SETFLAGS, uintptr(unsafe.Pointer(&flags)))
	if errno != 0 {
		return errno
	}
	return nil
}

// remaps clones a mount and has the member's own user namespace map its ids.
func remaps(path string) error {
	tree, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE)
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	space, err := os.Open("/proc/self/ns/user")
	if err != nil {
		return err
	}
	defer space.Close()
	return unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH,
		&unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(space.Fd())})
}

// named is ENOENT unless a table that members can read has the text.
func named(text string) error {
	files, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, path := range append(files, "/proc/self/mountinfo", "/proc/self/mounts", "/proc/self/mountstats") {
		if raw, err := os.ReadFile(path); err == nil && strings.Contains(string(raw), text) {
			return nil
		}
	}
	return unix.ENOENT
}
