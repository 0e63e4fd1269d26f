package mounts

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// folder opens a folder below root, step by step.
func folder(root, path string, owner int) (int, error) {
	at, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	for name := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		next, err := enter(at, name, owner)
		_ = unix.Close(at)
		if err != nil {
			return -1, err
		}
		at = next
	}
	return at, nil
}

// enter opens one folder in another, and makes it when it is not there.
func enter(at int, name string, owner int) (int, error) {
	next, err := open(at, name)
	if !errors.Is(err, unix.ENOENT) {
		return next, err
	}
	if err := unix.Mkdirat(at, name, 0o755); err != nil {
		return -1, fmt.Errorf("make %s: %w", name, err)
	}
	if err := unix.Fchownat(at, name, owner, owner, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return -1, fmt.Errorf("make %s: %w", name, err)
	}
	return open(at, name)
}

func open(at int, name string) (int, error) {
	how := unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV,
	}
	next, err := unix.Openat2(at, name, &how)
	switch {
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.EXDEV), errors.Is(err, unix.ENOTDIR):
		return -1, fmt.Errorf("%s: %w", name, errInTheWay)
	case err != nil:
		return -1, fmt.Errorf("%s: %w", name, err)
	}
	return next, nil
}
