package sandbox

import (
	"bytes"
	"context"
	"encoding/binary"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gpuaas/app-platform/sdk/procenv"
)

// table is the inodes of the processes in this machine's process table, by id. A process keeps its inode; another
// process that is given the same id later has another inode.
type table map[int]uint64

// running returns the process table; empty where the system has no /proc.
func running() table { return maps.Collect(processes()) }

// head is the length of an entry of a folder as Linux reads it (getdents64), before its name: inode, offset, length of
// the whole, type.
const head = 8 + 8 + 2 + 1

// processes returns this machine's processes with their inodes; none where the system has no /proc. The folder's
// entries have both, so that no process need be opened: a teardown reads the table several times, and on a busy
// machine that was half of a conformance run's work.
func processes() iter.Seq2[int, uint64] {
	return func(yield func(int, uint64) bool) {
		proc, err := os.Open("/proc")
		if err != nil {
			return
		}
		defer func() { _ = proc.Close() }()
		buffer := make([]byte, 32<<10)
		for {
			n, err := syscall.ReadDirent(int(proc.Fd()), buffer)
			if err != nil || n <= 0 {
				return
			}
			for rest := buffer[:n]; len(rest) > head; {
				size := int(binary.NativeEndian.Uint16(rest[16:]))
				if size <= head || size > len(rest) {
					return // another system's
				}
				entry := rest[:size]
				name, _, _ := bytes.Cut(entry[head:], []byte{0})
				if pid, err := strconv.Atoi(string(name)); err == nil &&
					!yield(pid, binary.NativeEndian.Uint64(entry)) {
					return
				}
				rest = rest[len(entry):]
			}
		}
	}
}

// pids returns the processes of this machine with the member's mark in their environment; none
// where the system has no /proc.
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
	mark := m.mark()
	for pid, inode := range processes() {
		if m.before[pid] == inode { // to read every environment takes ten times as long
			continue
		}
		if procenv.Has(pid, mark) {
			found = append(found, pid)
		}
	}
	return found
}

// ended reports whether a process has ended: it is not there any more, or a zombie that is not yet reaped.
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
