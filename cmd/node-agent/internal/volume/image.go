package volume

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/loop"
)

const (
	// block is the size of an image's blocks, in bytes, whatever its own size.
	block = 4096
	// minSize is the smallest file system, in bytes.
	minSize = 16 << 20
)

// whole is a size in whole blocks.
func whole(size int64) int64 { return size / block * block }

// build makes an image in dir under a name of its own, with an empty file system. It is locked as long as it is open.
func build(ctx context.Context, dir, id string, size int64) (*os.File, error) {
	if size < minSize {
		return nil, fmt.Errorf("%d bytes are less than %d, the smallest volume of this storage", size, minSize)
	}
	image, err := os.CreateTemp(dir, newPrefix+id+"-*")
	if err != nil {
		return nil, fmt.Errorf("it is not writable: %w", err)
	}
	err = errors.Join(lock(image, unix.LOCK_EX), reserve(image, size))
	if err == nil {
		err = format(ctx, image)
	}
	if err == nil {
		err = empty(image.Name())
	}
	if err = errors.Join(err, image.Sync()); err != nil {
		_ = os.Remove(image.Name())
		_ = image.Close()
		return nil, err
	}
	return image, nil
}

// reserve gives an image its size on the disk, so that the disk cannot be full where the volume is not. Where the disk
// knows no reservation the image is a sparse file. One that is larger stays as it is.
func reserve(image *os.File, size int64) error {
	info, err := image.Stat()
	if err != nil || info.Size() >= whole(size) {
		return err
	}
	var at unix.Statfs_t
	if err := unix.Fstatfs(int(image.Fd()), &at); err != nil {
		return err
	}
	free := int64(at.Bavail) * at.Bsize // #nosec G115 -- a disk's size
	if more := whole(size) - info.Size(); more > free {
		return fmt.Errorf("it needs %d bytes more, and the storage has %d", more, free)
	}
	err = unix.Fallocate(int(image.Fd()), 0, 0, whole(size))
	if errors.Is(err, unix.EOPNOTSUPP) {
		err = image.Truncate(whole(size))
	}
	if err != nil {
		return fmt.Errorf("reserve %d bytes: %w", size, err)
	}
	return nil
}

// format makes the file system. What it discards would not be reserved any more.
func format(ctx context.Context, image *os.File) error {
	return e2fs(ctx, image, 0, "mkfs.ext4", "-q", "-F", "-b", "4096", "-m", "0", "-O", "64bit", "-E",
		"nodiscard,root_owner=0:0", image.Name())
}

// e2fs runs a program of e2fsprogs, whose exit status may be as high as most. The program inherits the lock on the
// image, so that no other process touches the image before the program's end, should the agent be killed meanwhile.
func e2fs(ctx context.Context, lock *os.File, most int, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin"}
	cmd.ExtraFiles = []*os.File{lock}
	out, err := cmd.CombinedOutput()
	if ended := cmd.ProcessState; err != nil && (ended == nil || ended.ExitCode() < 0 || ended.ExitCode() > most) {
		return fmt.Errorf("%s of e2fsprogs: %w: %s", program, err, bytes.TrimSpace(out))
	}
	return nil
}

// empty takes away what mkfs and e2fsck put into a file system, unless something was found: programs that want an empty
// folder refuse it.
func empty(path string) error {
	tree, err := mountAt(path)
	if err != nil {
		return err
	}
	defer tree.Close()
	err = unix.Unlinkat(int(tree.Fd()), "lost+found", unix.AT_REMOVEDIR)
	if err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTEMPTY) {
		return fmt.Errorf("empty the file system: %w", err)
	}
	return nil
}

// mountAt mounts the file system of an image nowhere. The device keeps an open file of its own, and not that of a lock.
func mountAt(path string) (*os.File, error) {
	image, err := loop.Open(path)
	if err != nil {
		return nil, err
	}
	defer image.Close()
	return mount(image)
}

// The places of an ext4 superblock, in bytes, and its mark.
const (
	superblock                         = 1024
	blocksLow, blocksHigh, blockLog    = 0x4, 0x150, 0x18
	magicAt, magic, superblockBytesLen = 0x38, 0xEF53, 1024
)

// superblockBytes reads how large the file system of an image is.
func superblockBytes(image *os.File) (int64, error) {
	raw := make([]byte, superblockBytesLen)
	if _, err := image.ReadAt(raw, superblock); err != nil {
		return 0, fmt.Errorf("read the file system of %s: %w", filepath.Base(image.Name()), err)
	}
	if binary.LittleEndian.Uint16(raw[magicAt:]) != magic {
		return 0, fmt.Errorf("%s has no ext4 file system", filepath.Base(image.Name()))
	}
	low, high := binary.LittleEndian.Uint32(raw[blocksLow:]), binary.LittleEndian.Uint32(raw[blocksHigh:])
	blocks := int64(high)<<32 | int64(low)
	return blocks << (10 + binary.LittleEndian.Uint32(raw[blockLog:])), nil
}

// resizeCall is EXT4_IOC_RESIZE_FS, which takes a number of blocks.
const resizeCall = 0x40086610

// growMounted grows a file system, in use or not. The kernel lets only those do it who may set aside what is reserved.
func growMounted(image *os.File, size int64) error {
	tree, err := mount(image)
	if err != nil {
		return err
	}
	defer tree.Close()
	root, err := unix.Openat(int(tree.Fd()), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(root)
	blocks := uint64(size / block)               // #nosec G115 -- positive
	argument := uintptr(unsafe.Pointer(&blocks)) // #nosec G103
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(root), resizeCall, argument)
	if errno != 0 {
		return fmt.Errorf("grow the file system: %w", errno)
	}
	return unix.Syncfs(root)
}

// growIdle grows a file system that nothing has mounted to the size of its image, which is held.
func growIdle(ctx context.Context, image, held *os.File) error {
	const corrected = 1 // the status of a check that mended something
	err := e2fs(ctx, held, corrected, "e2fsck", "-f", "-p", image.Name())
	if err == nil {
		err = e2fs(ctx, held, 0, "resize2fs", image.Name())
	}
	if err != nil {
		return err
	}
	return empty(image.Name())
}

// lock takes a lock of an open file.
func lock(file *os.File, how int) error {
	for {
		err := unix.Flock(int(file.Fd()), how)
		if err == nil || !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
