package rootfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	othersRead  = 0o004
	othersEnter = 0o001
)

// skipGone lets a walk go on past what vanished or may not be entered.
func skipGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}

// copier copies trees; device is the file system that a tree begins on, beyond which it does not go.
type copier struct {
	link   bool
	linked map[uint64]string // inode of a copied file with several names → its first copy
}

// public reports whether every user of the node may read the file, or enter the folder.
func public(info os.FileInfo) bool {
	switch {
	case info.IsDir():
		return info.Mode()&othersEnter != 0
	case info.Mode().IsRegular():
		return info.Mode()&(othersRead|othersEnter) != 0
	}
	return info.Mode()&os.ModeSymlink != 0
}

// tree copies the folder from to to, with all in it that is public.
func (c *copier) tree(from, to string) error {
	info, err := os.Lstat(from)
	if err != nil || !info.IsDir() {
		return skipGone(err)
	}
	return c.folder(from, to, info, deviceOf(info))
}

func (c *copier) folder(from, to string, info os.FileInfo, device uint64) error {
	if !public(info) || deviceOf(info) != device {
		return nil
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return skipGone(err)
	}
	for _, entry := range entries {
		inner, err := entry.Info()
		if err != nil {
			continue // vanished meanwhile
		}
		source, target := filepath.Join(from, entry.Name()), filepath.Join(to, entry.Name())
		if inner.IsDir() {
			err = c.folder(source, target, inner, device)
		} else {
			err = c.file(source, target, inner)
		}
		if err != nil {
			return err
		}
	}
	return c.attributes(to, info)
}

// file copies a file or a link that is public.
func (c *copier) file(from, to string, info os.FileInfo) error {
	if !public(info) {
		return nil
	}
	if info.Mode()&os.ModeSymlink != 0 {
		target, err := os.Readlink(from)
		if err != nil {
			return skipGone(err)
		}
		return errors.Join(os.Symlink(target, to), own(to, info))
	}
	if c.link && os.Link(from, to) == nil {
		return nil
	}
	if first := c.linked[inodeOf(info)]; first != "" && os.Link(first, to) == nil {
		return nil
	}
	if err := copyBytes(from, to); err != nil {
		return skipGone(err)
	}
	if c.linked != nil && info.Sys().(*syscall.Stat_t).Nlink > 1 {
		c.linked[inodeOf(info)] = to
	}
	return c.attributes(to, info)
}

// attributes gives the copy its owner, then its mode, which a change of owner clears, then its time.
func (c *copier) attributes(to string, info os.FileInfo) error {
	mode := info.Sys().(*syscall.Stat_t).Mode & 0o7777
	return errors.Join(own(to, info), unix.Chmod(to, mode), os.Chtimes(to, info.ModTime(), info.ModTime()))
}

func own(to string, info os.FileInfo) error {
	stat := info.Sys().(*syscall.Stat_t)
	if err := os.Lchown(to, int(stat.Uid), int(stat.Gid)); err != nil && os.Geteuid() == 0 {
		return err
	}
	return nil
}

// copyBytes shares the blocks where the file system can, else copies them.
func copyBytes(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer target.Close()
	if unix.IoctlFileClone(int(target.Fd()), int(source.Fd())) == nil {
		return nil
	}
	if _, err := io.Copy(target, source); err != nil {
		return fmt.Errorf("copy %s: %w", from, err)
	}
	return nil
}

func deviceOf(info os.FileInfo) uint64 { return info.Sys().(*syscall.Stat_t).Dev }

func inodeOf(info os.FileInfo) uint64 { return info.Sys().(*syscall.Stat_t).Ino }
