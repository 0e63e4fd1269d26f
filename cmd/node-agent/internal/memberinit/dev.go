package memberinit

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// sharedDevices are the nodes of /dev that a member gets: what programs expect everywhere, and the
// accelerators and fabric it was rented for. Block devices are not among them.
var sharedDevices = []string{
	"null", "zero", "full", "random", "urandom", "tty", "kmsg", "fuse", "net/tun",
	"nvidia*", "nvidia-caps/*", "dri/*", "kfd", "infiniband/*", "gdrdrv", "accel*",
}

// devLinks are the usual links, name to target.
var devLinks = map[string]string{
	"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
	"ptmx": "pts/ptmx",
}

// fillDev makes a /dev of the member's own, so that what it creates there does not stay on the node.
func fillDev() error {
	err := errors.Join(
		mountFresh("tmpfs", "dev", unix.MS_NOSUID, "mode=755,size=1m"),
		mountFresh("tmpfs", "dev/shm", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777"),
		mountFresh("devpts", "dev/pts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620"),
		mountFresh("mqueue", "dev/mqueue", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""),
	)
	if err != nil {
		return err
	}
	for name, target := range devLinks {
		if err := os.Symlink(target, filepath.Join(DirRoot, "dev", name)); err != nil {
			return err
		}
	}
	return shareDevices()
}

func shareDevices() error {
	for _, pattern := range sharedDevices {
		found, err := filepath.Glob("/dev/" + pattern)
		if err != nil {
			return err
		}
		for _, device := range found {
			if err := shareDevice(device); err != nil {
				return err
			}
		}
	}
	return nil
}

func shareDevice(device string) error {
	info, err := os.Stat(device)
	if err != nil || info.Mode()&os.ModeDevice == 0 {
		return nil //nolint:nilerr // a name that is no device (a directory, a stale link) is not shared
	}
	target := filepath.Join(DirRoot, "dev", strings.TrimPrefix(device, "/dev/"))
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(target, nil, 0o644); err != nil {
		return err
	}
	return unix.Mount(device, target, "", unix.MS_BIND, "")
}
