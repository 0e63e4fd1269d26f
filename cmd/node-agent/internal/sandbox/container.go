package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/durable"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/idrange"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/inject"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/oci"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/procfs"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/rootfs"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/roster"
)

// containers holds what the node's members are started with.
type containers struct {
	runtime *oci.Runtime
	// serves says that a container has run here, or members do; else all this only sees and removes members of before.
	serves bool
	// others are the runtimes of further classes, by class.
	others map[string]*oci.Runtime
	// missing says, of each class whose runtime did not serve when the agent started, why.
	missing map[string]string
	cgroups *oci.Cgroups
	ids     *idrange.Allocator
	store   rootfs.Store
	root    *rootfs.Version
	tmpfs   bool
	reason  string
	// starting is read-locked while a member's group may be empty and is wanted.
	starting sync.RWMutex
}

// startContainer makes the member's folders, and starts its init as process 1 of a container.
func (m *Manager) startContainer(ctx context.Context, settings memberinit.Settings,
	member Member) (roster.Record, error) {
	if err := m.foreign(member); err != nil {
		return roster.Record{}, err
	}
	injected, err := inject.Resolve(member.Walls.Devices, member.Walls.profile())
	if err != nil {
		return roster.Record{}, err
	}
	if err := m.options.Volumes.Make(ctx, member.Walls.Volumes); err != nil {
		return roster.Record{}, err
	}
	ids, err := m.oci.ids.Take(member.ID)
	if err != nil {
		return roster.Record{}, err
	}
	settings.Env = injected.Env
	address := ""
	if m.options.Network != nil {
		if address, err = m.options.Network.Await(ctx, member.ID); err != nil {
			return roster.Record{}, err
		}
	}
	if err := m.folders(settings, ids, address); err != nil {
		return roster.Record{}, err
	}
	m.oci.starting.RLock()
	defer m.oci.starting.RUnlock()
	if err := m.oci.cgroups.Bound(allocationGroup(member.Walls.AllocationID), member.Walls.limits()); err != nil {
		return roster.Record{}, err
	}
	log, err := os.OpenFile(filepath.Join(settings.Dir, errorFile),
		os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return roster.Record{}, err
	}
	defer log.Close()
	listener, err := memberinit.Listen(filepath.Join(settings.Dir, memberinit.DirRun))
	if err != nil {
		return roster.Record{}, err
	}
	defer listener.Close()
	known := m.record(member)
	start := oci.Start{
		Container: m.container(member, ids, injected), Layers: m.layers(settings.Dir),
		Bundle:  filepath.Join(settings.Dir, bundleDir),
		Cgroups: m.oci.cgroups, Group: member.group(), Log: log, Listener: listener,
		Created: func(pid int) error {
			known, err = m.register(settings, known, pid)
			return err
		},
	}
	start.Layers.Volumes = m.mountable(member.Walls.Volumes)
	if m.options.Network != nil {
		start.Attach = func(pid int) error { return m.options.Network.Attach(ctx, member.ID, pid) }
	}
	err = m.oci.runtimeOf(member.Walls.Class).Start(ctx, start) // sets known
	return known, err
}

// record is what is known of a member before it starts.
func (m *Manager) record(member Member) roster.Record {
	known := roster.Record{Root: m.oci.root.Name, Group: member.group(), AllocationID: member.Walls.AllocationID}
	for _, device := range member.Walls.Devices {
		known.Devices = append(known.Devices, device.UUID)
	}
	for _, one := range member.Walls.Volumes {
		known.Volumes = append(known.Volumes, one.ID)
	}
	return known
}

// bundleDir holds the runtime's configuration of a member, in its folder.
const bundleDir = "bundle"

// folders makes the member's folders. What its root writes belongs to the first of its ids.
func (m *Manager) folders(settings memberinit.Settings, ids idrange.Range, address string) error {
	dir := settings.Dir
	if err := makeDirs(dir, memberinit.DirFS, memberinit.DirRun, memberinit.DirState, bundleDir); err != nil {
		return err
	}
	if err := m.oci.prepareLayers(dir, ids, address); err != nil {
		return err
	}
	own := filepath.Join(dir, memberinit.DirState)
	if err := durable.NoteJSON(filepath.Join(own, memberinit.SettingsFile), settings, 0o644); err != nil {
		return err
	}
	return errors.Join(os.Lchown(own, int(ids.First), int(ids.First)),
		os.Chmod(filepath.Join(own, memberinit.SettingsFile), 0o644))
}

// prepareLayers makes the overlay's folders and the scratch, on a tmpfs where the disk cannot carry an overlay. The
// upper's mode is the mode of the member's /.
func (c *containers) prepareLayers(dir string, ids idrange.Range, address string) error {
	layers := filepath.Join(dir, memberinit.DirFS)
	if c.tmpfs && !procfs.IsMountPoint(layers) {
		if err := unix.Mount("gpuaas", layers, "tmpfs", unix.MS_NODEV, "mode=700,size=50%"); err != nil {
			return fmt.Errorf("mount tmpfs: %w", err)
		}
	}
	for name, mode := range map[string]os.FileMode{dirUpper: 0o755, dirWork: 0o700, memberinit.DirScratch: 0o755} {
		path := filepath.Join(layers, name)
		if err := os.Mkdir(path, mode); errors.Is(err, os.ErrExist) {
			continue // and is the member's
		} else if err != nil {
			return err
		}
		if err := errors.Join(os.Chmod(path, mode), os.Lchown(path, int(ids.First), int(ids.First))); err != nil {
			return err
		}
	}
	return rootfs.Identity(filepath.Join(layers, dirUpper), ids, address)
}

// The overlay's folders, in memberinit.DirFS.
const (
	dirUpper = "upper"
	dirWork  = "work"
)

func (m *Manager) layers(dir string) oci.Layers {
	layers := filepath.Join(dir, memberinit.DirFS)
	program, err := os.Executable()
	if err != nil {
		program = "/proc/self/exe"
	}
	return oci.Layers{
		Source: memberinit.MountSource(dir), Lower: m.oci.root.Path,
		Upper: filepath.Join(layers, dirUpper), Work: filepath.Join(layers, dirWork),
		Scratch: filepath.Join(layers, memberinit.DirScratch), State: filepath.Join(dir, memberinit.DirState),
		Init: program,
	}
}

func (m *Manager) container(member Member, ids idrange.Range, injected inject.Injection) oci.Container {
	hostname := m.options.Hostname
	if hostname == "" {
		hostname, _ = os.Hostname()
	}
	return oci.Container{
		ID: member.ID, Hostname: hostname, Profile: member.Walls.profile(), IDs: ids,
		Args:       []string{"/" + rootfs.MemberDir + "/" + rootfs.InitFile, memberinit.ArgContainer},
		Env:        []string{"GOMAXPROCS=2", "PATH=" + memberinit.DefaultPath},
		CgroupPath: m.oci.cgroups.Path(member.group()), Limits: member.Walls.limits(),
		Devices: injected.Devices, Binds: injected.Binds, Hooks: injected.Hooks, Network: m.options.Network != nil,
		Rlimits: oci.Rlimits(),
	}
}

// runtimeOf is what makes members of a class.
func (c *containers) runtimeOf(class string) *oci.Runtime {
	if other := c.others[class]; other != nil {
		return other
	}
	return c.runtime
}

// knows reports whether any of the runtimes has something of a member.
func (c *containers) knows(memberID string) bool {
	for _, other := range c.others {
		if other.Knows(memberID) {
			return true
		}
	}
	return c.runtime.Knows(memberID)
}

// deleteMember removes what any of the runtimes has of a member.
func (c *containers) deleteMember(ctx context.Context, memberID string) error {
	err := c.runtime.Delete(ctx, memberID)
	for _, other := range c.others {
		err = errors.Join(err, other.Delete(ctx, memberID))
	}
	return err
}

// try starts a container of which only the start counts, in dir.
func (c *containers) try(ctx context.Context, runtime *oci.Runtime, dir string) error {
	const id = "mem_probe"
	ids, err := c.ids.Take(id)
	if err != nil {
		return err
	}
	if err := makeDirs(dir, memberinit.DirFS, memberinit.DirState, bundleDir); err != nil {
		return err
	}
	if err := c.prepareLayers(dir, ids, ""); err != nil {
		return err
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close()
	log, err := os.Create(filepath.Join(dir, errorFile))
	if err != nil {
		return err
	}
	defer log.Close()
	m := Manager{oci: c}
	member := Member{ID: id}
	start := oci.Start{
		Container: m.container(member, ids, inject.Injection{}), Layers: m.layers(dir),
		Bundle:  filepath.Join(dir, bundleDir),
		Cgroups: c.cgroups, Group: member.group(), Log: log, Listener: null, Created: func(int) error { return nil },
	}
	start.Container.Args = []string{"/bin/true"}
	err = errors.Join(c.cgroups.Bound(allocationGroup(""), oci.Limits{}), runtime.Delete(ctx, id),
		runtime.Start(ctx, start))
	err = errors.Join(err, runtime.Delete(ctx, id), c.cgroups.Remove(member.group()), c.ids.Free(id))
	c.cgroups.RemoveEmpty(allocationGroup(""))
	return err
}
