package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit"
)

// enterRoot builds the member's root and makes it the root of this mount namespace. The state directory stays open as
// fdState: a detached clone of its own, so that ".." leads nowhere.
func enterRoot(dir string) error {
	if err := os.Chdir(dir); err != nil {
		return err
	}
	const own = unix.MS_NOSUID | unix.MS_NODEV
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"make mounts private", func() error { return unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") }},
		{"hide the agent's files", func() error {
			return whiteout(filepath.Join(memberinit.DirFS, "upper"), filepath.Dir(filepath.Dir(dir)))
		}},
		{"mount overlay", func() error { return mountOverlay(dir) }},
		{"mount /proc", func() error { return mountFresh("proc", "proc", own|unix.MS_NOEXEC, "") }},
		{"mount /sys", func() error { return mountFresh("sysfs", "sys", own|unix.MS_NOEXEC, "") }},
		{"mount /sys/fs/cgroup", noControllers},
		{"mount /scratch", mountScratch},
		{"mount /run", func() error { return mountFresh("tmpfs", "run", own, "mode=755") }},
		{"mount /tmp", func() error { return mountFresh("tmpfs", "tmp", own, "mode=1777") }},
		{"fill /dev", fillDev},
		{"fill /run", func() error { return os.Mkdir(filepath.Join(memberinit.DirRoot, "run", "lock"), 0o1777) }},
		{"keep state directory", keepState},
		{"change root", pivot},
	} {
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return nil
}

func mountOverlay(dir string) error {
	options := "lowerdir=/,upperdir=" + memberinit.DirFS + "/upper,workdir=" + memberinit.DirFS + "/work"
	return unix.Mount(memberinit.MountSource(dir), memberinit.DirRoot, "overlay", 0, options)
}

// mountFresh mounts a new filesystem at a directory of the root, which it creates when it is missing.
func mountFresh(kind, at string, flags uintptr, options string) error {
	target := filepath.Join(memberinit.DirRoot, at)
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	return unix.Mount(kind, target, kind, flags, options)
}

func noControllers() error {
	at := filepath.Join(memberinit.DirRoot, "sys/fs/cgroup")
	if _, err := os.Stat(at); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return unix.Mount("cgroup", at, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=755,size=1m")
}

func mountScratch() error {
	at, from := filepath.Join(memberinit.DirRoot, "scratch"), filepath.Join(memberinit.DirFS, memberinit.DirScratch)
	if err := errors.Join(os.MkdirAll(at, 0o755), os.MkdirAll(from, 0o755), os.Chmod(from, 0o755)); err != nil {
		return err
	}
	return unix.Mount(from, at, "", unix.MS_BIND, "")
}

// whiteout makes a path absent in the overlay: a character device 0:0 in the upper layer.
func whiteout(upper, path string) error {
	above := filepath.Join(upper, filepath.Dir(path))
	if err := os.MkdirAll(above, 0o755); err != nil {
		return err
	}
	return unix.Mknod(filepath.Join(above, filepath.Base(path)), unix.S_IFCHR, 0)
}

// fillDev makes a /dev of the member's own, with the node's devices that members shared.
func fillDev() error {
	err := errors.Join(
		mountFresh("tmpfs", "dev", unix.MS_NOSUID, "mode=755,size=1m"),
		mountFresh("tmpfs", "dev/shm", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777"),
		mountFresh("devpts", "dev/pts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620"),
		mountFresh("mqueue", "dev/mqueue", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""),
	)
	for name, target := range map[string]string{
		"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
		"ptmx": "pts/ptmx",
	} {
		err = errors.Join(err, os.Symlink(target, filepath.Join(memberinit.DirRoot, "dev", name)))
	}
	for _, pattern := range []string{"null", "zero", "full", "random", "urandom", "tty", "kmsg", "fuse", "net/tun",
		"nvidia*", "dri/*", "kfd", "infiniband/*"} {
		found, _ := filepath.Glob("/dev/" + pattern)
		for _, device := range found {
			err = errors.Join(err, shareDevice(device))
		}
	}
	return err
}

func shareDevice(device string) error {
	info, err := os.Stat(device)
	if err != nil || info.Mode()&os.ModeDevice == 0 {
		return nil //nolint:nilerr // a name that is no device is not shared
	}
	target := filepath.Join(memberinit.DirRoot, "dev", strings.TrimPrefix(device, "/dev/"))
	if err := errors.Join(os.MkdirAll(filepath.Dir(target), 0o755), os.WriteFile(target, nil, 0o600)); err != nil {
		return err
	}
	return unix.Mount(device, target, "", unix.MS_BIND, "")
}

// keepState binds the state directory, opens the bind and detaches it.
func keepState() error {
	at := filepath.Join(memberinit.DirRoot, "run", ".state")
	if err := os.Mkdir(at, 0o700); err != nil {
		return err
	}
	if err := unix.Mount(memberinit.DirState, at, "", unix.MS_BIND, ""); err != nil {
		return err
	}
	fd, err := unix.Open(at, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err == nil {
		err = unix.Dup3(fd, fdState, 0)
		_ = unix.Close(fd)
	}
	return errors.Join(err, unix.Unmount(at, unix.MNT_DETACH), os.Remove(at))
}

// pivot swaps roots on one directory, which needs no place for the old one.
func pivot() error {
	if err := os.Chdir(memberinit.DirRoot); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return err
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return err
	}
	return os.Chdir("/")
}
