package sandbox

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

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
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	mark := []byte(m.mark() + "\x00")
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
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

// endGroup kills what is left of a process group and waits until none of it runs: nsenter ends when the signal reaches it,
// which may be before the program that it started has ended.
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
