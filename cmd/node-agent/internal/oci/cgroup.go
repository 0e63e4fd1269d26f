package oci

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Cgroups is the node's cgroups below one folder, in all hierarchies, whatever the node has mounted. Paths are relative
// to that folder.
type Cgroups struct {
	// Version is 1 or 2.
	Version int
	parent  string
	roots   []hierarchy
}

// hierarchy is one mounted tree; it stays open for as long as the process lives.
type hierarchy struct {
	names string // "memory", "cpu,cpuacct", or empty for version 2
	root  *os.Root
}

// has reports whether the hierarchy has a controller.
func (h hierarchy) has(controller string) bool {
	return h.names == "" || strings.Contains(","+h.names+",", ","+controller+",")
}

// OpenCgroups opens the hierarchies. Parent is an absolute folder in them, which is created when it is needed.
func OpenCgroups(parent string) (*Cgroups, error) {
	c := &Cgroups{Version: 2, parent: strings.Trim(path.Clean(parent), "/")}
	err := apart(func() error {
		names := legacyControllers()
		if len(names) == 0 {
			return c.open("", atCgroup)
		}
		c.Version = 1
		for _, name := range names {
			if err := c.open(name, filepath.Join(atCgroup, strings.TrimPrefix(name, "name="))); err != nil {
				return err
			}
		}
		return nil
	})
	return c, err
}

func (c *Cgroups) open(names, at string) error {
	root, err := os.OpenRoot(at)
	if err != nil {
		return fmt.Errorf("open cgroups: %w", err)
	}
	c.roots = append(c.roots, hierarchy{names: names, root: root})
	return nil
}

// Path gives the absolute path of a group in its hierarchies.
func (c *Cgroups) Path(group string) string { return "/" + path.Join(c.parent, group) }

func (c *Cgroups) at(group string) string { return path.Join(c.parent, group) }

// Bound makes a group with limits, which bound all in it together. The same again sets them again.
func (c *Cgroups) Bound(group string, limits Limits) error {
	for _, h := range c.roots {
		if !h.has("memory") && !h.has("cpu") {
			continue
		}
		if err := h.root.MkdirAll(c.at(group), 0o755); err != nil {
			return fmt.Errorf("create cgroup: %w", err)
		}
		if c.Version == 2 {
			if err := h.delegate(c.at(group)); err != nil {
				return err
			}
		}
		if err := h.bound(c.at(group), limits); err != nil {
			return fmt.Errorf("set limits: %w", err)
		}
	}
	return nil
}

// delegate lets the groups below have controllers: every folder above must pass them on.
func (h hierarchy) delegate(group string) error {
	for dir := path.Dir(group); ; dir = path.Dir(dir) {
		for _, controller := range []string{"cpu", "cpuset", "io", "memory", "pids"} {
			_ = h.write(dir, "cgroup.subtree_control", "+"+controller) // one that is not there is not needed
		}
		if dir == "." || dir == "/" {
			break
		}
	}
	return nil
}

func (h hierarchy) bound(group string, limits Limits) error {
	files := map[string]string{}
	switch {
	case h.names == "":
		files["memory.max"] = most(limits.MemoryBytes, "max")
		files["cpu.max"] = most(limits.CPUMillis*cpuPeriod/1000, "max") + " " + strconv.Itoa(cpuPeriod)
	case h.has("memory"):
		files["memory.limit_in_bytes"] = most(limits.MemoryBytes, "-1")
	case h.has("cpu"):
		files["cpu.cfs_period_us"] = strconv.Itoa(cpuPeriod)
		files["cpu.cfs_quota_us"] = most(limits.CPUMillis*cpuPeriod/1000, "-1")
	}
	for name, value := range files {
		if err := h.write(group, name, value); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func most(limit int64, none string) string {
	if limit <= 0 {
		return none
	}
	return strconv.FormatInt(limit, 10)
}

func (h hierarchy) write(group, name, value string) error {
	file, err := h.root.OpenFile(path.Join(group, name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString(value)
	return errors.Join(err, file.Close())
}

// PIDs lists the processes in a group and those below it, by their numbers on the node.
func (c *Cgroups) PIDs(group string) (pids []int) {
	seen := map[int]bool{}
	c.each(group, func(h hierarchy, dir string) {
		raw, _ := h.root.ReadFile(path.Join(dir, "cgroup.procs"))
		for line := range strings.Lines(string(raw)) {
			if pid, err := strconv.Atoi(strings.TrimSpace(line)); err == nil && pid > 0 && !seen[pid] {
				seen[pid] = true
				pids = append(pids, pid)
			}
		}
	})
	return pids
}

// Left lists the folders of a group that exist, with the hierarchy in front.
func (c *Cgroups) Left(group string) (left []string) {
	c.each(group, func(h hierarchy, dir string) {
		left = append(left, path.Join("/", strings.TrimPrefix(h.names, "name="), dir))
	})
	return left
}

// leaveTime bounds how long a group is waited for that its last processes are about to leave.
const leaveTime = 10 * time.Second

// Remove deletes a group and those below it. The kernel counts a killed process to its group until it has ended it, so
// that a group in use is tried again for [leaveTime]; what has processes then stays, and is an error.
func (c *Cgroups) Remove(group string) error {
	var dirs []func() error
	c.each(group, func(h hierarchy, dir string) {
		dirs = append(dirs, func() error { return h.root.Remove(dir) })
	})
	var failed error
	end := time.Now().Add(leaveTime)
	for i := len(dirs) - 1; i >= 0; i-- {
		err := dirs[i]()
		for ; errors.Is(err, unix.EBUSY) && time.Now().Before(end); err = dirs[i]() {
			time.Sleep(5 * time.Millisecond)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = errors.Join(failed, fmt.Errorf("remove cgroup: %w", err))
		}
	}
	return failed
}

// RemoveEmpty deletes an empty group. A group that is in use stays, without an error.
func (c *Cgroups) RemoveEmpty(group string) {
	for _, h := range c.roots {
		_ = h.root.Remove(c.at(group))
	}
}

// each calls visit for the group and all below it, in every hierarchy, what is above first.
func (c *Cgroups) each(group string, visit func(h hierarchy, dir string)) {
	for _, h := range c.roots {
		_ = fs.WalkDir(h.root.FS(), c.at(group), func(dir string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.IsDir() {
				return nil //nolint:nilerr // gone meanwhile
			}
			visit(h, dir)
			return nil
		})
	}
}

// Groups lists the folders directly below a group, in any hierarchy.
func (c *Cgroups) Groups(group string) (names []string) {
	seen := map[string]bool{}
	for _, h := range c.roots {
		entries, _ := fs.ReadDir(h.root.FS(), c.at(group))
		for _, entry := range entries {
			if entry.IsDir() && !seen[entry.Name()] {
				seen[entry.Name()] = true
				names = append(names, entry.Name())
			}
		}
	}
	return names
}

// MemoryKills counts the processes of a group that the kernel killed because the group had no memory left.
func (c *Cgroups) MemoryKills(group string) (kills int) {
	c.each(group, func(h hierarchy, dir string) {
		if !h.has("memory") {
			return
		}
		name := "memory.events.local"
		if c.Version == 1 {
			name = "memory.oom_control"
		}
		file, err := h.root.Open(path.Join(dir, name))
		if err != nil {
			return
		}
		defer file.Close()
		for lines := bufio.NewScanner(file); lines.Scan(); {
			if count, ok := strings.CutPrefix(lines.Text(), "oom_kill "); ok {
				n, _ := strconv.Atoi(count)
				kills += n
			}
		}
	})
	return kills
}

// Writable reports why members can have no cgroups here; nil when they can.
func (c *Cgroups) Writable() error {
	if err := unix.Access("/proc/self/cgroup", unix.R_OK); err != nil {
		return fmt.Errorf("the kernel has no cgroups: %w", err)
	}
	const probe = "probe"
	if err := c.Bound(probe, Limits{}); err != nil {
		return err
	}
	return c.Remove(probe)
}
