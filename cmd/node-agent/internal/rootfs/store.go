package rootfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	buildLock  = "build.lock"
	lockSuffix = ".lock"
	newPrefix  = ".new-"
)

// Store keeps versions of the root of one node.
type Store struct {
	// Dir is where versions are kept; its file system must take id-mapped mounts.
	Dir string
	// Node is the root of the node that versions are copies of; empty is /.
	Node string
	// Link makes files hard links to the node's where that is possible. It is quick and takes no space; but what
	// changes in place on the node, which package managers do not do, changes in the version too. For labs and tests.
	Link bool
}

// Version is one version of the root, which stays as long as it is not closed.
type Version struct {
	// Name distinguishes versions; Path is the folder.
	Name, Path string
	lock       *os.File
}

// Close lets go of the version, so that it may be deleted when it is out of use.
func (v *Version) Close() {
	if v != nil && v.lock != nil {
		_ = v.lock.Close()
	}
}

// Fixed returns a version that the operator built and keeps, such as an image on the node's disk.
func Fixed(dir string) (*Version, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("root of members: %w", err)
	}
	for _, part := range []string{"usr", "etc", MemberDir} {
		if info, err := os.Stat(filepath.Join(dir, part)); err != nil || !info.IsDir() {
			return nil, fmt.Errorf("root of members: %s has no folder %s; build it with \"node-agent root\"", dir, part)
		}
	}
	return &Version{Name: filepath.Base(dir), Path: dir}, nil
}

// Current returns the version of what the node has now, and builds it when it is missing. Another process that wants
// the same version waits for it.
func (s Store) Current() (*Version, error) {
	if err := errors.Join(os.MkdirAll(s.Dir, 0o711), os.Chmod(s.Dir, 0o711)); err != nil {
		return nil, fmt.Errorf("root of members: %w", err)
	}
	building, err := lockFile(filepath.Join(s.Dir, buildLock), unix.LOCK_EX)
	if err != nil {
		return nil, err
	}
	defer building.Close()
	name, err := s.fingerprint()
	if err != nil {
		return nil, err
	}
	found := &Version{Name: name, Path: filepath.Join(s.Dir, name)}
	if found.lock, err = lockFile(found.Path+lockSuffix, unix.LOCK_SH); err != nil {
		return nil, err
	}
	if _, err := os.Stat(found.Path); err == nil {
		return found, nil
	}
	if err := s.build(found.Path); err != nil {
		found.Close()
		return nil, fmt.Errorf("build the root of members: %w", err)
	}
	return found, nil
}

// build makes the version beside its place and moves it there whole.
func (s Store) build(path string) error {
	temp, err := os.MkdirTemp(s.Dir, newPrefix)
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	if err := s.fill(temp); err != nil {
		return err
	}
	if err := os.Chmod(temp, 0o755); err != nil {
		return err
	}
	return os.Rename(temp, path)
}

// Prune deletes the versions that used does not report and that no living process hands out, and what broken builds
// left.
func (s Store) Prune(used func(name string) bool) error {
	building, err := lockFile(filepath.Join(s.Dir, buildLock), unix.LOCK_EX)
	if err != nil {
		return err
	}
	defer building.Close()
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		return fmt.Errorf("delete old roots of members: %w", err)
	}
	var failed error
	for _, entry := range entries {
		name := entry.Name()
		switch {
		case !entry.IsDir():
		case strings.HasPrefix(name, newPrefix):
			failed = errors.Join(failed, os.RemoveAll(filepath.Join(s.Dir, name)))
		case !used(name):
			failed = errors.Join(failed, s.drop(name))
		}
	}
	return failed
}

// drop deletes one version unless a process has it.
func (s Store) drop(name string) error {
	path := filepath.Join(s.Dir, name)
	lock, err := lockFile(path+lockSuffix, unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	return errors.Join(os.RemoveAll(path), os.Remove(path+lockSuffix))
}

func lockFile(path string, how int) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("root of members: %w", err)
	}
	for {
		err = unix.Flock(int(file.Fd()), how)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("lock the root of members: %w", err)
	}
	return file, nil
}

// Names lists the versions there are.
func (s Store) Names() ([]string, error) {
	entries, err := os.ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, entry := range entries {
		if entry.IsDir() && !strings.HasPrefix(entry.Name(), newPrefix) {
			names = append(names, entry.Name())
		}
	}
	return names, err
}
