package sandbox

import (
	"bytes"
	"context"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// table is the inodes of the processes in this machine's process table, by id. A process keeps its inode; another
// process that is given the same id later has another inode.
type table map[int]uint64

// running returns the process table; empty where there is none to read.
func running() table {
	found := table{}
	for pid, entry := range processes() {
		if inode, ok := inodeOf(entry); ok {
			found[pid] = inode
		}
	}
	return found
}

// processes returns this machine's processes with their entries in the process table; none where there is none to read.
func processes() iter.Seq2[int, os.DirEntry] {
	entries, _ := os.ReadDir("/proc")
	return func(yield func(int, os.DirEntry) bool) {
		for _, entry := range entries {
			if pid, err := strconv.Atoi(entry.Name()); err == nil && !yield(pid, entry) {
				return
			}
		}
	}
}

// inodeOf returns the inode of a process's entry, and whether the process is still there.
func inodeOf(entry os.DirEntry) (uint64, bool) {
	info, err := entry.Info()
	if err != nil {
		return 0, false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return stat.Ino, ok
}

// pids returns the processes of this machine with the member's mark in their environment; none
// where there is no process table to read.
func (m *member) pids() (found []int) {
	m.mu.Lock()
	ran := m.ran
	m.mu.Unlock()
	if !ran {
		return nil
	}
	if m.space != nil {
		return m.space.pids()
	}
	mark := []byte(m.mark() + "\x00")
	for pid, entry := range processes() {
		inode, ok := inodeOf(entry)
		if !ok || m.before[pid] == inode { // to read every environment takes ten times as long
			continue
		}
		environ, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "environ"))
		if err == nil && bytes.Contains(environ, mark) {
			found = append(found, pid)
		}
	}
	return found
}

// ended reports whether a process runs no more: it is gone, or a zombie that nobody has reaped yet.
func ended(pid int) bool {
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return true
	}
	_, after, _ := strings.Cut(string(raw), ") ")
	return strings.HasPrefix(after, "Z") || strings.HasPrefix(after, "X")
}

func commandOf(pid int) string {
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(strings.ReplaceAll(string(raw), "\x00", " "))
}

// endGroup kills what is left of a process group and waits until none of it runs: nsenter ends when the signal reaches
// it, which may be before the program that it started has ended.
func (m *member) endGroup(group int) {
	if group <= 0 {
		return
	}
	for end := time.Now().Add(stopTime); time.Now().Before(end); wait(context.Background(), 5*time.Millisecond) {
		_ = syscall.Kill(-group, syscall.SIGKILL)
		if !slices.ContainsFunc(m.pids(), func(pid int) bool { return groupOf(pid) == group }) {
			return
		}
	}
}

// groupOf returns the process group of a process; 0 when it has ended.
func groupOf(pid int) int {
	group, err := syscall.Getpgid(pid)
	if err != nil {
		return 0
	}
	return group
}
