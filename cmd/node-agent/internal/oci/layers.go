package oci

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/idrange"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/mounts"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/rootfs"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

// Layers are the folders of the node that a member's root is put together from.
type Layers struct {
	// Source is what the root's overlay is called in mount tables.
	Source string
	// Lower is the version of the curated root.
	Lower string
	// Upper and Work are the overlay's, on one file system that can carry it.
	Upper, Work string
	// Scratch lies on no overlay; State holds results and logs; Init is the program of process 1.
	Scratch, State, Init string
	// Volumes are mounted over folders of the root.
	Volumes []Volume
}

// Volume is a mount of a member's that outlasts it.
type Volume struct {
	// Name is what errors call it.
	Name string
	// At is the folder of the member that it is mounted over.
	At string
	// Mount returns a mount of the volume that is attached nowhere yet, with its ids mapped by the user namespace at
	// users. It is called in the mount namespace in which the root is assembled.
	Mount func(users string) (*os.File, error)
}

// assemble puts the member's root together; users is the path of a user namespace with the mapping of ids. It runs
// apart, in a mount namespace that ends with the calls of the runtime.
func (l Layers) assemble(users string, ids idrange.Range, devices []Device) error {
	if err := unix.Mount("gpuaas", assembly, "tmpfs", unix.MS_NOSUID, "mode=711,size=4m"); err != nil {
		return fmt.Errorf("mount %s: %w", assembly, err)
	}
	for _, dir := range []string{atLower, atRoot, atDevices} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	if err := mapped(l.Lower, atLower, users); err != nil {
		return fmt.Errorf("map the ids of the root: %w", err)
	}
	if err := l.overlay(); err != nil {
		return fmt.Errorf("mount overlay: %w", err)
	}
	if err := unix.Unmount(atLower, unix.MNT_DETACH); err != nil { // the overlay has its own
		return err
	}
	inside := func(parts ...string) string { return filepath.Join(append([]string{atRoot}, parts...)...) }
	const quiet = unix.MS_NOSUID | unix.MS_NODEV
	return errors.Join(
		bind(l.Scratch, inside(rootfs.ScratchDir), quiet),
		bind(l.State, inside(rootfs.MemberDir, rootfs.StateDir), quiet|unix.MS_NOEXEC),
		bind(l.Init, inside(rootfs.MemberDir, rootfs.InitFile), quiet|unix.MS_RDONLY),
		makeDevices(devices, ids),
		l.volumes(users, ids),
	)
}

// volumes mounts each volume in the root. It creates a missing folder in the overlay, as the member's own. The member
// may have put anything in the way in an earlier life: no link of its is followed.
func (l Layers) volumes(users string, ids idrange.Range) error {
	for _, volume := range l.Volumes {
		tree, err := volume.Mount(users)
		if err != nil {
			return err
		}
		err = mounts.PutBelow(tree, atRoot, volume.At, int(ids.First))
		_ = tree.Close()
		if err != nil {
			return wire.Errorf(wire.CodeVolumeUnavailable, "volume %s: %v", volume.Name, err)
		}
	}
	return nil
}

// overlay is mounted by root outside of the member, so that its marks are attributes that the member can neither see
// nor forge. The upper's folder is entered, because names of folders may hold what separates options.
func (l Layers) overlay() error {
	if filepath.Dir(l.Upper) != filepath.Dir(l.Work) {
		return errors.New("upper and work folder lie apart")
	}
	if err := unix.Chdir(filepath.Dir(l.Upper)); err != nil {
		return err
	}
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", atLower, filepath.Base(l.Upper), filepath.Base(l.Work))
	return unix.Mount(l.Source, atRoot, "overlay", unix.MS_NODEV, options)
}

// bind mounts a folder or file with flags that the runtime cannot lose.
func bind(from, to string, flags uintptr) error {
	if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind %s: %w", filepath.Base(to), err)
	}
	if err := unix.Mount("", to, "", unix.MS_BIND|unix.MS_REMOUNT|flags, ""); err != nil {
		return fmt.Errorf("bind %s: %w", filepath.Base(to), err)
	}
	return nil
}

// makeDevices creates the member's device nodes with the member's root as owner: with the node's root as owner they
// would have no owner in the member, and those that only root may open would be useless there.
func makeDevices(devices []Device, ids idrange.Range) error {
	for i, device := range devices {
		path := deviceNode(atDevices, i)
		number := unix.Mkdev(uint32(device.Major), uint32(device.Minor)) // #nosec G115 -- device numbers are small
		dev := int(number)                                               // #nosec G115 -- of two small numbers
		if err := unix.Mknod(path, unix.S_IFCHR|0o666, dev); err != nil {
			return fmt.Errorf("make %s: %w", device.Path, err)
		}
		if err := errors.Join(os.Lchown(path, int(ids.First), int(ids.First)), unix.Chmod(path, 0o666)); err != nil {
			return fmt.Errorf("make %s: %w", device.Path, err)
		}
	}
	return nil
}

// mapped mounts a copy of a folder's mount whose ids are those that a user namespace maps them to, read-only.
func mapped(from, to, users string) error {
	tree, err := mounts.Clone(from)
	if err != nil {
		return err
	}
	defer tree.Close()
	if err := mounts.Map(tree, users, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NODEV); err != nil {
		return err
	}
	return mounts.Put(tree, to)
}
