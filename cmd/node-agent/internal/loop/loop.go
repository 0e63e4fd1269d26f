// Package loop shows image files as block devices. A device is found again by the file itself, so that no file ever has
// two, whichever program attached it; and the kernel detaches it when nothing has it open or mounted any more.
package loop

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/mounts"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/thread"
)

const (
	// control is the minor number of what hands out devices, among those of the major number 10; devices have major 7.
	control, miscMajor, loopMajor = 237, 10, 7
	// tries bounds how often another program may take a free device first.
	tries = 64
	// sector is what the device is read and written in, in bytes.
	sector = 4096
	blocks = "/sys/block"
)

// Device is a loop device. It stays as long as it is open, or something of it is mounted.
type Device struct {
	*os.File
	minor uint32
}

// Open opens an image for reading and writing through a mount that is nowhere. Members see the path of a device's file
// in /sys, which then is that of nothing.
func Open(path string) (*os.File, error) {
	tree, err := mounts.Clone(path)
	if err != nil {
		return nil, err
	}
	defer tree.Close()
	image, err := unix.Open(self(tree), unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return os.NewFile(uintptr(image), path), nil
}

// self is the path of an open file, for this process.
func self(file *os.File) string { return "/proc/self/fd/" + strconv.Itoa(int(file.Fd())) }

// Attach returns the device of an image that Open has opened: the one that it has, or a new one. Callers that may meet
// over one image hold a lock.
func Attach(image *os.File) (Device, error) {
	found, err := Find(image)
	if err != nil || found.File != nil {
		return found, err
	}
	manager, err := open("loop-control", unix.S_IFCHR, miscMajor, control)
	if err != nil {
		return Device{}, fmt.Errorf("the kernel has no loop devices: %w", err)
	}
	defer manager.Close()
	for range tries {
		number, err := unix.IoctlRetInt(int(manager.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return Device{}, fmt.Errorf("get a loop device: %w", err)
		}
		device, err := configure(number, image)
		if err == nil || !errors.Is(err, unix.EBUSY) {
			return device, err
		}
	}
	return Device{}, errors.New("get a loop device: other processes take every free one")
}

func configure(number int, image *os.File) (Device, error) {
	device, err := numbered(number)
	if err != nil {
		return Device{}, fmt.Errorf("open loop device %d: %w", number, err)
	}
	config := unix.LoopConfig{Fd: uint32(image.Fd()), Size: sector} // #nosec G115 -- a descriptor
	config.Info.Flags = unix.LO_FLAGS_AUTOCLEAR
	if err := unix.IoctlLoopConfigure(int(device.Fd()), &config); err != nil {
		_ = device.Close()
		return Device{}, fmt.Errorf("attach loop device %d: %w", number, err)
	}
	return device, nil
}

// Find returns the device that an image has; one without a file when it has none.
func Find(image *os.File) (Device, error) {
	all, err := All(image)
	for _, other := range all[min(len(all), 1):] {
		_ = other.Close()
	}
	if err != nil || len(all) == 0 {
		return Device{}, err
	}
	return all[0], nil
}

// All returns the devices that an image has: at most one, unless another program has attached more.
func All(image *os.File) (devices []Device, err error) {
	var wanted unix.Stat_t
	if err := unix.Fstat(int(image.Fd()), &wanted); err != nil {
		return nil, fmt.Errorf("inspect %s: %w", image.Name(), err)
	}
	all, err := os.ReadDir(blocks)
	if err != nil { // without a look at all of them the image could get a second one
		return nil, fmt.Errorf("list loop devices: %w", err)
	}
	for _, entry := range all {
		number, err := strconv.Atoi(strings.TrimPrefix(entry.Name(), "loop"))
		if _, unused := os.Stat(filepath.Join(blocks, entry.Name(), "loop")); err != nil || unused != nil {
			continue
		}
		device, err := numbered(number)
		if err != nil {
			continue // it went meanwhile
		}
		info, err := unix.IoctlLoopGetStatus64(int(device.Fd()))
		if err == nil && info.Device == wanted.Dev && info.Inode == wanted.Ino {
			devices = append(devices, device)
			continue
		}
		_ = device.Close()
	}
	slices.SortFunc(devices, func(a, b Device) int { return int(a.minor) - int(b.minor) })
	return devices, nil
}

// Fit makes a device as large as its image, which may have grown.
func (d Device) Fit(image *os.File) error {
	info, err := image.Stat()
	if err != nil {
		return fmt.Errorf("inspect %s: %w", image.Name(), err)
	}
	if have, err := d.Seek(0, io.SeekEnd); err != nil || have >= info.Size() {
		return err
	}
	if err := unix.IoctlSetInt(int(d.Fd()), unix.LOOP_SET_CAPACITY, 0); err != nil {
		return fmt.Errorf("grow the loop device: %w", err)
	}
	return nil
}

// Mount mounts a file system of a kind from the device, with options, nowhere. Mount tables call it by the name.
func (d Device) Mount(kind, name string, options ...[2]string) (tree *os.File, err error) {
	err = thread.Apart(func() error {
		if err := unix.Unshare(unix.CLONE_FS); err != nil { // the working folder is then the thread's own
			return fmt.Errorf("mount %s: %w", name, err)
		}
		folder, err := nodes(name, unix.S_IFBLK, loopMajor, d.minor)
		if err != nil {
			return fmt.Errorf("mount %s: %w", name, err)
		}
		defer folder.Close()
		if err := unix.Fchdir(int(folder.Fd())); err != nil {
			return fmt.Errorf("mount %s: %w", name, err)
		}
		tree, err = mounts.New(kind, 0, append([][2]string{{"source", name}}, options...)...)
		return err
	})
	return tree, err
}

// numbered opens the device of a number.
func numbered(number int) (Device, error) {
	name, minor := "loop"+strconv.Itoa(number), uint32(number) // #nosec G115 -- loop devices are few
	raw, err := os.ReadFile(filepath.Join(blocks, name, "dev"))
	if _, own, found := strings.Cut(strings.TrimSpace(string(raw)), ":"); err == nil && found {
		// The kernel's max_part may leave minor numbers for partitions between them.
		if known, err := strconv.ParseUint(own, 10, 20); err == nil {
			minor = uint32(known)
		}
	}
	file, err := open(name, unix.S_IFBLK, loopMajor, minor)
	return Device{file, minor}, err
}

// open opens a device by its numbers.
func open(name string, kind, major, minor uint32) (*os.File, error) {
	folder, err := nodes(name, kind, major, minor)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	file, err := unix.Openat(int(folder.Fd()), name, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(file), name), nil
}

// nodes returns a folder with the node of a device, on a private file system: the node's /dev may lack it.
func nodes(name string, kind, major, minor uint32) (*os.File, error) {
	folder, err := mounts.New("tmpfs", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC, [2]string{"size", "64k"})
	if err != nil {
		return nil, err
	}
	device := int(unix.Mkdev(major, minor)) // #nosec G115 -- of two small numbers
	if err := unix.Mknodat(int(folder.Fd()), name, kind|0o600, device); err != nil {
		_ = folder.Close()
		return nil, err
	}
	return folder, nil
}
