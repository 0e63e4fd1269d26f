package oci

import (
	"fmt"
	"slices"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/idrange"
)

// Limits bound a member; 0 is unbounded.
type Limits struct {
	MemoryBytes int64
	CPUMillis   int64
	Pids        int64
}

// Device is a device node that a member sees.
type Device struct {
	// Path is where the member sees it, below /dev.
	Path string `json:"path"`
	// Major and Minor are the character device's numbers.
	Major int64 `json:"major"`
	Minor int64 `json:"minor"`
}

// Bind shows a file or folder of the node in a member, read-only.
type Bind struct {
	Source string `json:"source"`
	Target string `json:"target"`
	// Options are those of mount(8) that an injected driver wants; read-only, nosuid and nodev always come with them.
	Options []string `json:"options,omitempty"`
}

// options are the bind's own, as far as they do not open what is always shut.
func (b Bind) options() []string {
	options := []string{"bind", "ro", "nosuid", "nodev"}
	for _, option := range b.Options {
		if !slices.Contains(append(options, "rw", "suid", "dev", "rbind"), option) {
			options = append(options, option)
		}
	}
	return options
}

// Container describes a member's walls.
type Container struct {
	// ID is the runtime's name of it, and Hostname the member's own.
	ID, Hostname string
	Profile      Profile
	IDs          idrange.Range
	// Args is the program of process 1 and its arguments; Env its environment.
	Args, Env []string
	// CgroupPath is absolute; empty for none.
	CgroupPath string
	Limits     Limits
	Devices    []Device
	Binds      []Bind
	// Hooks are what a device's specification has the runtime do.
	Hooks *specs.Hooks
	// Network gives the member a network namespace of its own; without one it has the node's.
	Network bool
	// Rlimits are raised for the member where the agent can.
	Rlimits []specs.POSIXRlimit
}

// spec returns the runtime's configuration. root is the folder that becomes the member's /, devices is where the agent
// has created the device nodes, and joined has the paths of the namespaces that exist already.
func (c Container) spec(root, devices string, joined map[specs.LinuxNamespaceType]string) (*specs.Spec, error) {
	capabilities := c.Profile.capabilities()
	mask, ro := c.Profile.paths()
	ids := []specs.LinuxIDMapping{{ContainerID: 0, HostID: c.IDs.First, Size: idrange.Size}}
	spec := &specs.Spec{
		Version: "1.0.2",
		Process: &specs.Process{
			User: specs.User{}, Args: c.Args, Env: c.Env, Cwd: "/", NoNewPrivileges: true, Rlimits: c.Rlimits,
			Capabilities: &specs.LinuxCapabilities{Bounding: capabilities, Effective: capabilities,
				Permitted: capabilities},
		},
		Root:     &specs.Root{Path: root},
		Hostname: c.Hostname, Hooks: c.Hooks,
		Mounts: c.mounts(devices),
		Linux: &specs.Linux{
			UIDMappings: ids, GIDMappings: ids, Namespaces: c.namespaces(joined), CgroupsPath: c.CgroupPath,
			Resources:         c.resources(),
			RootfsPropagation: "private", MaskedPaths: mask, ReadonlyPaths: ro,
		},
	}
	var err error
	if spec.Linux.Seccomp, err = c.Profile.filter(spec); err != nil {
		return nil, fmt.Errorf("filter of system calls: %w", err)
	}
	return spec, nil
}

func (c Container) namespaces(joined map[specs.LinuxNamespaceType]string) []specs.LinuxNamespace {
	kinds := []specs.LinuxNamespaceType{
		specs.UserNamespace, specs.PIDNamespace, specs.MountNamespace, specs.IPCNamespace, specs.UTSNamespace,
		specs.CgroupNamespace,
	}
	if c.Network {
		kinds = append(kinds, specs.NetworkNamespace)
	}
	var namespaces []specs.LinuxNamespace
	for _, kind := range kinds {
		namespaces = append(namespaces, specs.LinuxNamespace{Type: kind, Path: joined[kind]})
	}
	return namespaces
}

// mounts are those that the runtime mounts in the member; what is on the node's disk is in the root already.
func (c Container) mounts(devices string) []specs.Mount {
	fresh := func(kind, at string, options ...string) specs.Mount {
		return specs.Mount{Destination: at, Type: kind, Source: kind, Options: options}
	}
	mounts := []specs.Mount{
		fresh("proc", "/proc", "nosuid", "nodev", "noexec"),
		fresh("tmpfs", "/dev", "nosuid", "noexec", "strictatime", "mode=755", "size=1m"),
		fresh("devpts", "/dev/pts", "nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"),
		fresh("tmpfs", "/dev/shm", "nosuid", "nodev", "noexec", "mode=1777"),
		fresh("mqueue", "/dev/mqueue", "nosuid", "nodev", "noexec"),
		c.sys(),
		// A container runtime in a member takes an empty folder here for a machine without controllers, which it can do
		// without.
		{Destination: "/sys/fs/cgroup", Type: "tmpfs", Source: "cgroup",
			Options: []string{"nosuid", "nodev", "noexec", "mode=755", "size=1m"}},
		fresh("tmpfs", "/run", "nosuid", "nodev", "mode=755"),
		fresh("tmpfs", "/run/lock", "nosuid", "nodev", "mode=1777", "size=5m"),
		fresh("tmpfs", "/tmp", "nosuid", "nodev", "mode=1777"),
	}
	for i, device := range c.Devices {
		mounts = append(mounts, specs.Mount{
			Destination: device.Path, Type: "bind", Source: deviceNode(devices, i),
			Options: []string{"bind", "nosuid", "noexec"},
		})
	}
	for _, bind := range c.Binds {
		mounts = append(mounts, specs.Mount{Destination: bind.Target, Type: "bind", Source: bind.Source,
			Options: bind.options()})
	}
	return mounts
}

// sys is a fresh one for a network of the member's own; the kernel mounts none for a network that belongs to the node.
func (c Container) sys() specs.Mount {
	if c.Network {
		return specs.Mount{Destination: "/sys", Type: "sysfs", Source: "sysfs",
			Options: []string{"nosuid", "nodev", "noexec", "ro"}}
	}
	return specs.Mount{Destination: "/sys", Type: "bind", Source: "/sys",
		Options: []string{"rbind", "nosuid", "nodev", "noexec", "ro"}}
}

// common are the devices that every program expects; the runtime makes them in /dev.
var common = []Device{
	{"/dev/null", 1, 3}, {"/dev/zero", 1, 5}, {"/dev/full", 1, 7}, {"/dev/random", 1, 8}, {"/dev/urandom", 1, 9},
	{"/dev/tty", 5, 0}, {"/dev/ptmx", 5, 2},
}

func (c Container) resources() *specs.LinuxResources {
	resources := &specs.LinuxResources{Devices: []specs.LinuxDeviceCgroup{{Allow: false, Access: "rwm"}}}
	allow := func(major, minor *int64) {
		resources.Devices = append(resources.Devices, specs.LinuxDeviceCgroup{Allow: true, Type: "c", Major: major,
			Minor: minor, Access: "rw"})
	}
	for _, device := range append(slices.Clone(common), c.Devices...) {
		allow(&device.Major, &device.Minor)
	}
	pts := int64(136)
	allow(&pts, nil)
	if c.Limits.MemoryBytes > 0 {
		resources.Memory = &specs.LinuxMemory{Limit: &c.Limits.MemoryBytes}
	}
	if c.Limits.CPUMillis > 0 {
		resources.CPU = c.Limits.cpu()
	}
	if c.Limits.Pids > 0 {
		resources.Pids = &specs.LinuxPids{Limit: &c.Limits.Pids}
	}
	return resources
}

// cpuPeriod is over which a share of the processors is counted, in microseconds.
const cpuPeriod = 100_000

func (l Limits) cpu() *specs.LinuxCPU {
	period, quota := uint64(cpuPeriod), l.CPUMillis*cpuPeriod/1000
	shares := uint64(max(2, l.CPUMillis*1024/1000)) // #nosec G115 -- positive
	return &specs.LinuxCPU{Shares: &shares, Quota: &quota, Period: &period}
}
