package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/idrange"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/oci"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/procfs"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/rootfs"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

// The names in the state directory, beside the members.
const (
	rangesDir  = "ids"
	rootsDir   = "roots"
	runtimeDir = "runtime" // and, with the class behind it, those of further classes
)

// detect finds out how members are kept apart here. As root there are containers or no members: a member that is root
// and has no walls is root on the node.
// A full disk is an error: what was tried on it says nothing of what the node can do once there is space again.
func (m *Manager) detect(ctx context.Context) (Isolation, error) {
	switch {
	case os.Geteuid() != 0:
		return m.plain("the agent does not run as root"), nil
	case m.options.ForceProcess:
		return m.plain("the agent was started with --no-namespaces"), nil
	}
	if err := m.openContainers(ctx); full(err) {
		return Isolation{}, fmt.Errorf("the disk of the state directory is full: %w", err)
	} else if err != nil {
		return unable(err), nil
	}
	m.oci.serves = true
	m.openClasses(ctx)
	return m.offers(), nil
}

func full(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

// plain is the isolation of a node without walls: for one tenant at a time, as a whole, unless the operator vouches for
// more.
func (m *Manager) plain(reason string) Isolation {
	classes := []string{ClassWholeNode}
	if m.options.SingleTenant {
		classes = append(classes, ClassContainer)
	}
	return Isolation{
		Mode: memberinit.ModeProcess, Reason: reason, Classes: classes, Profiles: []oci.Profile{oci.Service},
		Gaps: plainGaps(reason),
	}
}

// unable is the isolation of a node that can start no member.
func unable(err error) Isolation {
	code := wire.CodeRuntimeMissing
	if wire.HasCode(err, wire.CodeRuntimeTooOld) {
		code = wire.CodeRuntimeTooOld
	}
	return Isolation{Reason: err.Error(), code: code, Gaps: []Gap{{Wall: WallRuntime, Reason: err.Error()}}}
}

// openContainers makes everything ready that members need, and tries it with one. Members are seen and removed without
// a runtime.
func (m *Manager) openContainers(ctx context.Context) error {
	cgroups, err := oci.OpenCgroups(m.cgroupParent())
	if err != nil {
		return err
	}
	ids, err := idrange.Open(filepath.Join(m.state, rangesDir), m.options.IDFirst, m.options.IDRanges)
	if err != nil {
		return err
	}
	m.oci = &containers{runtime: oci.Gone(filepath.Join(m.state, runtimeDir)), cgroups: cgroups, ids: ids,
		store: rootfs.Store{Dir: filepath.Join(m.state, rootsDir)}}
	runtime, err := m.findRuntime(ctx)
	if err != nil {
		return err
	}
	m.oci.runtime = runtime
	if m.options.Root != "" {
		m.oci.root, err = rootfs.Fixed(m.options.Root)
	} else {
		m.oci.root, err = m.oci.store.Current()
	}
	if err != nil {
		return err
	}
	onDisk := m.try(ctx, m.oci.runtime)
	if onDisk == nil || full(onDisk) {
		return onDisk
	}
	m.oci.tmpfs = true
	if inMemory := m.try(ctx, m.oci.runtime); inMemory != nil {
		return errors.Join(onDisk, inMemory)
	}
	m.oci.reason = onDisk.Error()
	return nil
}

// findRuntime finds the runtime of the options; without one crun, or runc on a node that has only that.
func (m *Manager) findRuntime(ctx context.Context) (*oci.Runtime, error) {
	state := filepath.Join(m.state, runtimeDir)
	if m.options.Runtime != "" {
		return oci.Find(ctx, m.options.Runtime, state)
	}
	found, err := oci.Find(ctx, "crun", state)
	if err == nil {
		return found, nil
	}
	if other, otherErr := oci.Find(ctx, "runc", state); otherErr == nil {
		return other, nil
	}
	return nil, err
}

// offers returns the isolation that the node's containers offer, with its gaps.
func (m *Manager) offers() Isolation {
	found := Isolation{
		Mode: memberinit.ModeContainer, Tmpfs: m.oci.tmpfs, Reason: m.oci.reason, Runtime: m.oci.runtime.Name,
		RuntimeVersion: m.oci.runtime.Version, Cgroups: m.oci.cgroups.Version,
		Classes: []string{ClassContainer, ClassWholeNode}, Profiles: []oci.Profile{oci.Service, oci.Nesting},
	}
	found.Missing = maps.Clone(m.oci.missing)
	for _, class := range []string{ClassSandbox, ClassVM} {
		if other := m.oci.others[class]; other != nil {
			if err := there(other); err != nil {
				found.Missing[class] = err.Error()
			} else {
				found.Classes = append(found.Classes, class)
			}
		}
		if reason := found.Missing[class]; reason != "" {
			found.Gaps = append(found.Gaps, Gap{Wall: WallRuntime,
				Reason: "class " + class + " is not offered: " + reason})
		}
	}
	if m.options.Network == nil {
		found.Gaps = append(found.Gaps, Gap{Wall: WallNetwork,
			Reason: "members share the node's network: " + cmp.Or(m.options.NoNetwork,
				"the agent was started without one for them")})
	}
	return found
}

// Recheck looks again whether the runtime is there, and reports whether what the node offers has changed.
func (m *Manager) Recheck() bool {
	before := m.Isolation()
	if m.oci == nil || !m.oci.serves {
		return false
	}
	now := m.offers()
	if err := there(m.oci.runtime); err != nil {
		now = unable(err)
	}
	if before.Mode == now.Mode && slices.Equal(before.Classes, now.Classes) {
		return false
	}
	m.isolation.Store(&now)
	return true
}

// there returns an error when a runtime is not installed any more.
func there(runtime *oci.Runtime) error {
	if _, err := exec.LookPath(runtime.Program); err != nil {
		return wire.Errorf(wire.CodeRuntimeMissing, "the OCI runtime %s was removed; install the package %s again",
			runtime.Program, runtime.Name)
	}
	return nil
}

// openClasses tries the runtimes of further classes, each with one member. Those that do not serve are left out.
func (m *Manager) openClasses(ctx context.Context) {
	m.oci.others, m.oci.missing = make(map[string]*oci.Runtime), make(map[string]string)
	for class, program := range m.options.ClassRuntimes {
		found, err := oci.FindFor(ctx, class, program, filepath.Join(m.state, runtimeDir+"-"+strings.ToLower(class)))
		if err == nil {
			err = m.try(ctx, found)
		}
		if err != nil {
			m.oci.missing[class] = err.Error()
			m.log.WarnContext(ctx, "a class of isolation is not offered", "class", class, "because", err)
			continue
		}
		m.oci.others[class] = found
	}
}

// refuses reports why a member cannot have these walls here; nil when it can.
func (i Isolation) refuses(walls Walls) error {
	switch {
	case i.Mode == "":
		return wire.Errorf(i.code, "the node can start no member: %s", i.Reason)
	case i.Missing[walls.Class] != "":
		return wire.Errorf(wire.CodeRuntimeMissing, "the runtime of class %s does not work: %s", walls.Class,
			i.Missing[walls.Class])
	case walls.Class != "" && !slices.Contains(i.Classes, walls.Class):
		return wire.Errorf(wire.CodeIsolationUnavailable,
			"the node offers no isolation of class %s; place the member on one that does", walls.Class)
	case !slices.Contains(i.Profiles, walls.profile()):
		return wire.Errorf(wire.CodeProfileUnavailable,
			"the node offers no profile %s; place the member on one that does", walls.profile())
	}
	return nil
}

// try makes a member whose program ends at once, and removes it. A node whose ids members have used up has run them.
func (m *Manager) try(ctx context.Context, runtime *oci.Runtime) error {
	dir, err := os.MkdirTemp(m.state, ".probe-")
	if err != nil {
		return fmt.Errorf("try a container: %w", err)
	}
	defer func() { _ = errors.Join(procfs.UnmountBelow(dir), os.RemoveAll(dir)) }()
	err = m.oci.try(ctx, runtime, dir)
	if have, _ := m.oci.ids.Members(); err == nil || wire.HasCode(err, wire.CodeMemberIDsExhausted) && len(have) > 0 {
		return nil
	}
	return fmt.Errorf("try a container: %w", err)
}
