package sandbox

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path"
	"path/filepath"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/procfs"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/roster"
)

// cgroupParent is the group of this agent's members. Agents of several nodes share the groups of one kernel.
func (m *Manager) cgroupParent() string {
	if m.options.CgroupParent != "" {
		return m.options.CgroupParent
	}
	hash := fnv.New64a()
	fmt.Fprintf(hash, "%s %d", m.state, procfs.Namespace(0, "mnt"))
	return fmt.Sprintf("/gpuaas-%x", hash.Sum64())
}

// groups lists the cgroups that a member has, in whichever allocation.
func (m *Manager) groups(memberID string) (groups []string) {
	if m.oci == nil {
		return nil
	}
	for _, allocation := range m.oci.cgroups.Groups("") {
		if group := path.Join(allocation, memberID); len(m.oci.cgroups.Left(group)) > 0 {
			groups = append(groups, group)
		}
	}
	return groups
}

// limited lists the processes in the member's cgroups.
func (m *Manager) limited(memberID string) (pids []int) {
	for _, group := range m.groups(memberID) {
		pids = append(pids, m.oci.cgroups.PIDs(group)...)
	}
	return pids
}

// outside adds to a residue what is of the member beyond its folder, its processes and their mounts.
func (m *Manager) outside(found *Residue, memberID string) error {
	for _, group := range m.groups(memberID) {
		found.Cgroups = append(found.Cgroups, m.oci.cgroups.Left(group)...)
	}
	found.Cgroups = found.Cgroups[:min(len(found.Cgroups), maxNames)]
	if m.options.Network == nil {
		return nil
	}
	left, err := m.options.Network.Left(memberID)
	found.Network = append(found.Network, left...)
	return err
}

// dismantle removes what the runtime and the network have of a member without living processes.
func (m *Manager) dismantle(ctx context.Context, memberID string) error {
	if m.oci == nil {
		return nil
	}
	m.noteKills(memberID)
	err := m.oci.deleteMember(ctx, memberID)
	for _, group := range m.groups(memberID) {
		err = errors.Join(err, m.oci.cgroups.Remove(group))
	}
	m.leaveGroups()
	if m.options.Network != nil {
		err = errors.Join(err, m.options.Network.Detach(memberID))
	}
	return err
}

// leaveGroups deletes the groups of allocations that have no members here any more. While a member starts, the group of
// its allocation may be empty: then it is left to the next time.
func (m *Manager) leaveGroups() {
	if !m.oci.starting.TryLock() {
		return
	}
	defer m.oci.starting.Unlock()
	for _, allocation := range m.oci.cgroups.Groups("") {
		m.oci.cgroups.RemoveEmpty(allocation)
	}
	m.oci.cgroups.RemoveEmpty("")
}

// forget lets what the member had be used again. Nothing of it is left.
func (m *Manager) forget(memberID string) error {
	if m.oci == nil {
		return nil
	}
	return errors.Join(m.oci.ids.Free(memberID), m.prune())
}

// prune deletes versions of the root that neither a member nor the next one uses.
func (m *Manager) prune() error {
	if m.oci.root == nil {
		return nil // what the next member uses is not known
	}
	names, err := m.oci.store.Names()
	if err != nil || len(names) < 2 {
		return err
	}
	used := map[string]bool{m.oci.root.Name: true}
	files, err := filepath.Glob(filepath.Join(m.dir, "*", roster.File))
	for _, file := range files {
		if known := roster.Read(filepath.Dir(file)); known != nil {
			used[known.Root] = true
		}
	}
	return errors.Join(err, m.oci.store.Prune(func(name string) bool { return used[name] }))
}

// sweep frees what a killed agent left: the id ranges of members that have nothing left, and unused roots.
func (m *Manager) sweep(ctx context.Context) {
	members, err := m.oci.ids.Members()
	for _, member := range members {
		if _, statErr := os.Lstat(filepath.Join(m.dir, member)); !errors.Is(statErr, os.ErrNotExist) {
			continue
		}
		if left, residueErr := m.Residue(member); residueErr == nil && left.Empty() {
			err = errors.Join(err, m.oci.ids.Free(member))
		}
	}
	if m.options.Root == "" {
		err = errors.Join(err, m.prune())
	}
	if err != nil {
		m.log.WarnContext(ctx, "some of what an earlier agent left was not removed", "error", err)
	}
}
