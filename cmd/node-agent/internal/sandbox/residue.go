package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/procfs"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/roster"
	"github.com/gpuaas/app-platform/sdk/procenv"
)

const (
	// maxNames bounds the paths, processes and mounts that a residue lists.
	maxNames = 50
	// maxWalk bounds the entries that are counted; more than this is reported as this.
	maxWalk = 1_000_000
)

// Residue is everything of a member that is on the node now. Processes, Mounts and Names list at most
// 50 each; Files counts files and directories, Bytes their size.
type Residue struct {
	Sandbox   bool      `json:"sandbox"`
	Processes []Process `json:"processes"`
	Mounts    []string  `json:"mounts"`
	Files     int       `json:"files"`
	Bytes     int64     `json:"bytes"`
	Names     []string  `json:"names"`
	// Cgroups are the groups of the member's limits, and Network what is of its network on the node.
	Cgroups []string `json:"cgroups"`
	Network []string `json:"network"`
}

// Process is a process of the member by its number on the node.
type Process struct {
	PID     int    `json:"pid"`
	Command string `json:"command"`
}

// Empty reports whether nothing is left.
func (r Residue) Empty() bool {
	return !r.Sandbox && len(r.Processes) == 0 && len(r.Mounts) == 0 && r.Files == 0 && len(r.Cgroups) == 0 &&
		len(r.Network) == 0
}

// Residue looks at the node. A member that was never here has none.
func (m *Manager) Residue(memberID string) (Residue, error) {
	dir, err := m.memberDir(memberID)
	if err != nil {
		return Residue{}, err
	}
	found := Residue{Processes: []Process{}, Mounts: []string{}, Names: []string{}, Cgroups: []string{},
		Network: []string{}}
	pids, err := m.processesOf(dir)
	if err != nil {
		return found, err
	}
	for _, pid := range pids[:min(len(pids), maxNames)] {
		found.Processes = append(found.Processes, Process{PID: pid, Command: procfs.Command(pid)})
	}
	found.Mounts = mountsOf(dir, pids)
	if err := m.outside(&found, memberID); err != nil {
		return found, err
	}
	if err := found.countFiles(dir); err != nil {
		return found, err
	}
	return found, nil
}

func (r *Residue) countFiles(dir string) error {
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			return nil // vanished meanwhile, or counted when it was listed but not to be entered
		}
		if err != nil {
			return err
		}
		r.Sandbox = true
		if path == dir {
			return nil
		}
		r.Files++
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			r.Bytes += info.Size()
		}
		if name, err := filepath.Rel(dir, path); err == nil && len(r.Names) < maxNames {
			r.Names = append(r.Names, strings.ToValidUTF8(name, "?"))
		}
		if r.Files >= maxWalk {
			return fs.SkipAll
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("count files of the member: %w", err)
	}
	return nil
}

// mountsOf lists the mounts below the directory as the node sees them, and each overlay of the member
// in whatever mount namespace its processes hold.
func mountsOf(dir string, pids []int) []string {
	found := append([]string{}, procfs.MountsBelow(dir)...)
	seen := map[uint64]bool{}
	for _, pid := range pids {
		namespace := procfs.Namespace(pid, "mnt")
		if seen[namespace] {
			continue
		}
		seen[namespace] = true
		for _, line := range procfs.MountInfo(pid) {
			if fields := strings.Fields(line); len(fields) > 4 && strings.Contains(line,
				" "+memberinit.MountSource(dir)+" ") {
				found = append(found, fmt.Sprintf("%s (mount namespace of process %d)", fields[4], pid))
			}
		}
	}
	return found[:min(len(found), maxNames)]
}

// search holds what one scan of the process table needs.
type search struct {
	source    string // of the member's overlay in mount tables
	marker    string // in the environment of inits and plain processes
	namespace uint64 // PID namespace of the living init
	own       uint64 // PID namespace of the agent
	below     map[int]bool
	nested    map[uint64]bool // PID namespace → is it the member's or below it?
	mounts    map[uint64]bool // mount namespace → does it hold the member's overlay?
}

// processesOf scans the node's process table. A process is the member's when its PID namespace is the member's or one
// below it, when it holds a mount namespace with the member's overlay, when it is in the member's cgroup, when it
// descends from the member's init, or when it was started with the member's root in its environment, by which plain
// processes are found when their init has ended.
func (m *Manager) processesOf(dir string) ([]int, error) {
	look := search{
		source: memberinit.MountSource(dir), own: procfs.Namespace(0, "pid"), below: map[int]bool{},
		marker: memberinit.EnvRoot + "=" + filepath.Join(dir, memberinit.DirRoot),
		nested: map[uint64]bool{}, mounts: map[uint64]bool{},
	}
	if known := roster.Read(dir); known != nil && known.Alive() {
		look.namespace = known.PIDNamespace
		look.below[known.InitPID] = true
		descendants, err := procfs.Descendants(known.InitPID)
		if err != nil {
			return nil, err
		}
		for _, pid := range descendants {
			look.below[pid] = true
		}
	}
	for _, pid := range m.limited(filepath.Base(dir)) {
		look.below[pid] = true
	}
	pids, err := procfs.PIDs()
	if err != nil {
		return nil, err
	}
	var found []int
	for _, pid := range pids {
		if pid != os.Getpid() && look.matches(pid) {
			found = append(found, pid)
		}
	}
	return found, nil
}

func (s *search) matches(pid int) bool {
	stat, err := procfs.ReadStat(pid)
	if err != nil || stat.Dead() {
		return false
	}
	return s.below[pid] || s.inNamespace(pid) || s.seesOverlay(pid) || procenv.Has(pid, s.marker)
}

func (s *search) inNamespace(pid int) bool {
	inode := procfs.Namespace(pid, "pid")
	if s.namespace == 0 || inode == 0 || inode == s.own {
		return false
	}
	known, seen := s.nested[inode]
	if !seen {
		known = isBelow(pid, s.namespace)
		s.nested[inode] = known
	}
	return known
}

// isBelow walks up the process's PID namespaces until it meets the wanted one or the agent's horizon.
func isBelow(pid int, wanted uint64) bool {
	fd, err := unix.Open(fmt.Sprintf("/proc/%d/ns/pid", pid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	for range 32 { // the kernel nests no deeper
		if err != nil {
			return false
		}
		var stat unix.Stat_t
		if err = unix.Fstat(fd, &stat); err == nil && stat.Ino == wanted {
			_ = unix.Close(fd)
			return true
		}
		var parent int
		parent, err = unix.IoctlRetInt(fd, unix.NS_GET_PARENT)
		_ = unix.Close(fd)
		fd = parent
	}
	return false
}

func (s *search) seesOverlay(pid int) bool {
	inode := procfs.Namespace(pid, "mnt")
	if inode == 0 {
		return false
	}
	known, seen := s.mounts[inode]
	if !seen {
		table := strings.Join(procfs.MountInfo(pid), "\n")
		known = strings.Contains(table, " "+s.source+" ")
		s.mounts[inode] = known
	}
	return known
}
