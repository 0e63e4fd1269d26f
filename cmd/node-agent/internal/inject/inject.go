// Package inject finds what a member's devices are on the node, and what comes into the member with them.
package inject

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
	"tags.cncf.io/container-device-interface/pkg/cdi"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/oci"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

// standIn is the major number of device nodes for devices that are only declared: one that Linux keeps free for local
// use, so that no driver answers, and an open that the walls allow ends with ENXIO.
const standIn = 60

// Device is an accelerator with its identity.
type Device struct {
	// UUID is the vendor's, and CDI its qualified name where the node has a specification of it.
	UUID, CDI string
	// Path is its device node, and Minor that node's number.
	Path  string
	Minor int
	// Simulated says that it is declared and not there.
	Simulated bool
}

// Injection is what devices bring into a member: their nodes, files of the node, environment, and what the runtime is
// to run.
type Injection struct {
	Devices []oci.Device
	Binds   []oci.Bind
	Env     []string
	Hooks   *specs.Hooks
}

// companions are device nodes that every member with a device of a kind needs: the driver's own, which all such members
// of the node share.
var companions = []struct {
	device string
	also   []string
}{
	{"/dev/nvidia[0-9]*", []string{"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"}},
	{"/dev/dri/renderD*", []string{"/dev/kfd"}},
}

// Resolve finds what a member's devices are on the node: by the Container Device Interface where the node has a
// specification, else by their device nodes. One that is not there, or is another now, is refused.
func Resolve(devices []Device, profile oci.Profile) (Injection, error) {
	var found Injection
	var named []string
	for _, device := range devices {
		var err error
		switch {
		case device.CDI != "" && !device.Simulated:
			named = append(named, device.CDI)
		case device.Simulated:
			err = found.add(oci.Device{Path: device.Path, Major: standIn, Minor: int64(device.Minor)})
		default:
			err = found.node(device)
		}
		if err != nil {
			return found, err
		}
	}
	if err := found.cdi(named); err != nil {
		return found, err
	}
	if profile == oci.Nesting {
		for _, path := range []string{"/dev/fuse", "/dev/net/tun"} {
			_ = found.take(path) // what the node has not, the member has not
		}
	}
	return found, nil
}

// add keeps a device node once. Its path is checked here, since it becomes a path in the member.
func (i *Injection) add(device oci.Device) error {
	if !strings.HasPrefix(device.Path, "/dev/") || filepath.Clean(device.Path) != device.Path {
		return wire.Errorf(wire.CodeDeviceMissing, "device %q is not a path below /dev", device.Path)
	}
	if !slices.ContainsFunc(i.Devices, func(known oci.Device) bool { return known.Path == device.Path }) {
		i.Devices = append(i.Devices, device)
	}
	return nil
}

// take adds a device node of the node.
func (i *Injection) take(path string) error {
	var stat unix.Stat_t
	if err := unix.Stat(path, &stat); err != nil {
		return err
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFCHR {
		return errors.New("it is not a character device")
	}
	return i.add(oci.Device{Path: path, Major: int64(unix.Major(stat.Rdev)), Minor: int64(unix.Minor(stat.Rdev))})
}

// node adds a device by its device node, with what goes with it.
func (i *Injection) node(device Device) error {
	if err := i.take(device.Path); err != nil {
		return wire.Errorf(wire.CodeDeviceMissing, "device %s is not at %s: %v", device.UUID, device.Path, err)
	}
	if got := i.Devices[len(i.Devices)-1]; got.Path == device.Path && got.Minor != int64(device.Minor) {
		return wire.Errorf(wire.CodeDeviceMissing,
			"%s has the number %d and not %d: device %s has changed; start the agent again",
			device.Path, got.Minor, device.Minor, device.UUID)
	}
	for _, rule := range companions {
		if fits, _ := filepath.Match(rule.device, device.Path); !fits {
			continue
		}
		for _, path := range rule.also {
			_ = i.take(path)
		}
	}
	return nil
}

// cdi adds what the node's specifications say of devices by their qualified names.
func (i *Injection) cdi(names []string) error {
	if len(names) == 0 {
		return nil
	}
	cache, err := cdi.NewCache(cdi.WithAutoRefresh(false))
	if err != nil {
		return wire.Errorf(wire.CodeDeviceMissing, "read the node's device specifications: %v", err)
	}
	spec := &specs.Spec{}
	if missing, err := cache.InjectDevices(spec, names...); err != nil {
		return wire.Errorf(wire.CodeDeviceMissing,
			"the node's device specifications lack %s (%v); write them again, for example by nvidia-ctk",
			strings.Join(missing, ", "), err)
	}
	if spec.Process != nil {
		i.Env = append(i.Env, spec.Process.Env...)
	}
	for _, mount := range spec.Mounts {
		i.Binds = append(i.Binds, oci.Bind{Source: mount.Source, Target: mount.Destination, Options: mount.Options})
	}
	i.Hooks = spec.Hooks
	if spec.Linux == nil {
		return nil
	}
	for _, device := range spec.Linux.Devices {
		if device.Type != "c" && device.Type != "u" {
			return wire.Errorf(wire.CodeDeviceMissing, "the specification names %s, which is not a character device",
				device.Path)
		}
		if err := i.add(oci.Device{Path: device.Path, Major: device.Major, Minor: device.Minor}); err != nil {
			return err
		}
	}
	return nil
}

// InSpecifications returns the qualified name by which the node's specifications know a device: by its identity or its
// number; empty when they do not.
func InSpecifications(vendor string, keys ...string) string {
	cache, err := cdi.NewCache(cdi.WithAutoRefresh(false))
	if err != nil {
		return ""
	}
	for _, key := range keys {
		if name := vendor + "=" + key; key != "" && cache.GetDevice(name) != nil {
			return name
		}
	}
	return ""
}
