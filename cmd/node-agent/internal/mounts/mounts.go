// Package mounts makes mounts that are nowhere yet. Such a mount ends with the last descriptor of it, unless it is put
// somewhere: a program that is killed leaves none behind.
package mounts

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Clone returns a copy of the mount that shows a file or folder, from there down. The mount must be of the calling
// thread's mount namespace. A link in the last part of the path is not followed.
func Clone(path string) (*os.File, error) {
	const flags = unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC | unix.AT_SYMLINK_NOFOLLOW
	tree, err := unix.OpenTree(unix.AT_FDCWD, path, flags)
	if err != nil {
		return nil, fmt.Errorf("clone the mount of %s: %w", path, err)
	}
	return os.NewFile(uintptr(tree), path), nil
}

// New mounts a file system of a kind with options, each a name and a value; a name without one is a flag.
func New(kind string, attributes int, options ...[2]string) (*os.File, error) {
	context, err := unix.Fsopen(kind, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("the kernel has no file system %s: %w", kind, err)
	}
	defer unix.Close(context)
	for _, option := range options {
		if option[1] == "" {
			err = unix.FsconfigSetFlag(context, option[0])
		} else {
			err = unix.FsconfigSetString(context, option[0], option[1])
		}
		if err != nil {
			return nil, fmt.Errorf("mount %s with %s: %w", kind, option[0], err)
		}
	}
	if err := unix.FsconfigCreate(context); err != nil {
		return nil, fmt.Errorf("mount %s: %w", kind, err)
	}
	tree, err := unix.Fsmount(context, unix.FSMOUNT_CLOEXEC, attributes)
	if err != nil {
		return nil, fmt.Errorf("mount %s: %w", kind, err)
	}
	return os.NewFile(uintptr(tree), kind), nil
}

// Map gives attributes to a mount that is attached nowhere yet, and maps the ids of its files by the user namespace at
// the path users.
func Map(tree *os.File, users string, attributes uint64) error {
	space, err := os.Open(users)
	if err != nil {
		return fmt.Errorf("map the ids of %s: %w", tree.Name(), err)
	}
	defer space.Close()
	set := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP | attributes, Userns_fd: uint64(space.Fd())}
	if err := unix.MountSetattr(int(tree.Fd()), "", unix.AT_EMPTY_PATH, &set); err != nil {
		return fmt.Errorf("the file system of %s does not support id-mapped mounts: %w", tree.Name(), err)
	}
	return nil
}

// Set gives attributes to a mount that is attached nowhere yet.
func Set(tree *os.File, attributes uint64) error {
	set := unix.MountAttr{Attr_set: attributes}
	if err := unix.MountSetattr(int(tree.Fd()), "", unix.AT_EMPTY_PATH, &set); err != nil {
		return fmt.Errorf("restrict the mount of %s: %w", tree.Name(), err)
	}
	return nil
}

// Put mounts a tree over a folder.
func Put(tree *os.File, at string) error {
	err := unix.MoveMount(int(tree.Fd()), "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH)
	if err != nil {
		return fmt.Errorf("mount %s: %w", tree.Name(), err)
	}
	return nil
}

// PutBelow mounts a tree over the folder path of root, and makes the folders that are not there, as their owner's. No
// link of the path is followed, and no other mount entered: what somebody has put in the way is refused.
func PutBelow(tree *os.File, root, path string, owner int) error {
	at, err := folder(root, path, owner)
	if err != nil {
		return fmt.Errorf("the folder %s: %w", path, err)
	}
	defer unix.Close(at)
	err = unix.MoveMount(int(tree.Fd()), "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
	if err != nil {
		return fmt.Errorf("mount over %s: %w", path, err)
	}
	return nil
}

// errInTheWay is the error of a folder that cannot be created or entered.
var errInTheWay = errors.New("a link, a mount or a file is in its way")
