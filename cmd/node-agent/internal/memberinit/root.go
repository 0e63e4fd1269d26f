package memberinit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// A step of building the root, with what to call it when it fails.
type rootStep struct {
	name string
	do   func() error
}

// enterRoot builds the member's root on DirRoot and makes it the root of this mount namespace. The
// state directory stays open as fdState: a detached clone of its own, so that ".." leads nowhere.
func enterRoot(s Settings) error {
	if err := os.Chdir(s.Dir); err != nil {
		return fmt.Errorf("enter member directory: %w", err)
	}
	resolv := volatileResolvConf()
	steps := []rootStep{
		{"make mounts private", func() error { return unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") }},
		{"hide the agent's files", func() error { return whiteouts(filepath.Join(DirFS, "upper"), s.Hide) }},
		{"mount overlay", func() error { return mountOverlay(s.Dir) }},
		{"mount /proc", func() error { return mountFresh("proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "") }},
		{"mount /sys", func() error { return mountFresh("sysfs", "sys", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "") }},
		{"mount /sys/fs/cgroup", noControllers},
		{"mount /scratch", mountScratch},
		{"mount /run", func() error { return mountFresh("tmpfs", "run", unix.MS_NOSUID|unix.MS_NODEV, "mode=755") }},
		{"mount /tmp", func() error { return mountFresh("tmpfs", "tmp", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777") }},
		{"fill /dev", fillDev},
		{"fill /run", func() error { return fillRun(resolv) }},
		{"keep state directory", keepStateClone},
		{"change root", pivot},
	}
	for _, step := range steps {
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return nil
}

func mountOverlay(dir string) error {
	options := "lowerdir=/,upperdir=" + DirFS + "/upper,workdir=" + DirFS + "/work"
	return unix.Mount(MountSource(dir), DirRoot, "overlay", 0, options)
}

// mountFresh mounts a new filesystem at a directory of the root, which is made when it is missing.
func mountFresh(kind, at string, flags uintptr, options string) error {
	target := filepath.Join(DirRoot, at)
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	return unix.Mount(kind, target, kind, flags, options)
}

// noControllers gives the member an empty, writable /sys/fs/cgroup: a container runtime that is told to use no cgroups takes
// it for a machine without controllers, where it would stop at one with nothing there. A kernel without cgroups has no such
// directory, and needs none.
func noControllers() error {
	at := filepath.Join(DirRoot, "sys/fs/cgroup")
	if _, err := os.Stat(at); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return unix.Mount("cgroup", at, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=755,size=1m")
}

// mountScratch gives the member a directory that lies on no overlay, since some of what members run stacks overlays of its
// own, which only works on a plain filesystem. It is beside the overlay's layers: on the node's disk, or on their tmpfs.
func mountScratch() error {
	at, from := filepath.Join(DirRoot, ScratchPath), filepath.Join(DirFS, dirScratch)
	if err := errors.Join(os.MkdirAll(at, 0o755), os.MkdirAll(from, 0o755), os.Chmod(from, 0o755)); err != nil {
		return err
	}
	return unix.Mount(from, at, "", unix.MS_BIND, "")
}

// whiteouts makes the paths absent in the overlay: a character device 0:0 in the upper layer. The
// parents are made in the upper layer with the owner and mode they have below.
func whiteouts(upper string, paths []string) error {
	for _, path := range paths {
		if _, err := os.Lstat(path); err != nil {
			continue
		}
		parent, err := copyParents(upper, filepath.Dir(filepath.Clean(path)))
		if err != nil {
			return err
		}
		err = unix.Mknod(filepath.Join(parent, filepath.Base(path)), unix.S_IFCHR, 0)
		if err != nil && !errors.Is(err, unix.EEXIST) {
			return err
		}
	}
	return nil
}

func copyParents(upper, dir string) (string, error) {
	below, above := "/", upper
	for part := range strings.SplitSeq(strings.Trim(dir, "/"), "/") {
		below, above = filepath.Join(below, part), filepath.Join(above, part)
		var stat unix.Stat_t
		if err := unix.Stat(below, &stat); err != nil {
			return "", err
		}
		if err := os.Mkdir(above, 0o755); errors.Is(err, os.ErrExist) {
			continue
		} else if err != nil {
			return "", err
		}
		if err := errors.Join(unix.Chown(above, int(stat.Uid), int(stat.Gid)), unix.Chmod(above, stat.Mode&0o7777)); err != nil {
			return "", err
		}
	}
	return above, nil
}

// keepStateClone binds the state directory, opens the bind and detaches it. The descriptor then has
// that directory as the root of its own mount: a member's root that reaches it through /proc/1/fd
// finds its own results there and no way up to the node.
func keepStateClone() error {
	at := filepath.Join(DirRoot, "run", ".state")
	if err := os.Mkdir(at, 0o700); err != nil {
		return err
	}
	if err := unix.Mount(DirState, at, "", unix.MS_BIND, ""); err != nil {
		return err
	}
	err := keepState(at)
	return errors.Join(err, unix.Unmount(at, unix.MNT_DETACH), os.Remove(at))
}

// pivot swaps roots on one directory, which needs no place for the old one.
func pivot() error {
	if err := os.Chdir(DirRoot); err != nil {
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

// resolvFile is a resolv.conf that lies on a filesystem the member does not get.
type resolvFile struct {
	path    string
	content []byte
}

// volatileResolvConf finds a resolv.conf that is a link into /run, where the member has its own.
func volatileResolvConf() resolvFile {
	path, err := filepath.EvalSymlinks("/etc/resolv.conf")
	if err != nil || !strings.HasPrefix(path, "/run/") {
		return resolvFile{}
	}
	content, err := os.ReadFile(path)
	if err != nil || len(content) > 64<<10 {
		return resolvFile{}
	}
	return resolvFile{path: path, content: content}
}

func fillRun(resolv resolvFile) error {
	lock := filepath.Join(DirRoot, "run", "lock")
	if err := errors.Join(os.Mkdir(lock, 0o755), os.Chmod(lock, 0o777|os.ModeSticky)); err != nil {
		return err
	}
	if resolv.path == "" {
		return nil
	}
	target := filepath.Join(DirRoot, resolv.path)
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	return os.WriteFile(target, resolv.content, 0o644)
}
