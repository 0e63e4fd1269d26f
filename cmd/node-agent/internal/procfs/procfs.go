// Package procfs reads /proc: which processes exist, who descends from whom, which namespaces they are
// in. Everything is read at the moment of the call; a process that vanishes meanwhile is left out.
package procfs

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// maxRead bounds what is read of one file under /proc, in bytes.
const maxRead = 1 << 20

// Stat is what /proc/PID/stat says. Start is in clock ticks since boot and distinguishes two processes with the same
// number.
type Stat struct {
	PID, PPID int
	State     byte
	Start     uint64
	Comm      string
}

// Dead reports whether the process has ended and only waits for its parent.
func (s Stat) Dead() bool { return s.State == 'Z' || s.State == 'X' }

// PIDs lists the processes that exist.
func PIDs() ([]int, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// ReadStat reads one process; an error wrapping fs.ErrNotExist means that it does not exist any more.
func ReadStat(pid int) (Stat, error) {
	raw, err := os.ReadFile(path(pid, "stat"))
	if err != nil {
		return Stat{}, fmt.Errorf("read process: %w", err)
	}
	return parseStat(pid, string(raw))
}

// parseStat cuts at the last parenthesis, since the command between them may hold anything.
func parseStat(pid int, raw string) (Stat, error) {
	open, end := strings.IndexByte(raw, '('), strings.LastIndexByte(raw, ')')
	if open < 0 || end < open {
		return Stat{}, fmt.Errorf("process %d: stat has no command", pid)
	}
	fields := strings.Fields(raw[end+1:])
	if len(fields) < 20 {
		return Stat{}, fmt.Errorf("process %d: stat has %d fields", pid, len(fields))
	}
	ppid, err := strconv.Atoi(fields[1])
	if err != nil {
		return Stat{}, fmt.Errorf("process %d: parent: %w", pid, err)
	}
	start, err := strconv.ParseUint(fields[19], 10, 64)
	if err != nil {
		return Stat{}, fmt.Errorf("process %d: start time: %w", pid, err)
	}
	return Stat{PID: pid, PPID: ppid, State: fields[0][0], Start: start, Comm: raw[open+1 : end]}, nil
}

// Running reports whether the process with this number and start time still executes.
func Running(pid int, start uint64) bool {
	stat, err := ReadStat(pid)
	return err == nil && stat.Start == start && !stat.Dead()
}

// Descendants lists the living processes below root, without root, whatever session they are in.
func Descendants(root int) ([]int, error) {
	pids, err := PIDs()
	if err != nil {
		return nil, err
	}
	children := map[int][]Stat{}
	for _, pid := range pids {
		if stat, err := ReadStat(pid); err == nil {
			children[stat.PPID] = append(children[stat.PPID], stat)
		}
	}
	var found []int
	for queue := []int{root}; len(queue) > 0; queue = queue[1:] {
		for _, child := range children[queue[0]] {
			queue = append(queue, child.PID)
			if !child.Dead() {
				found = append(found, child.PID)
			}
		}
	}
	return found, nil
}

// Command gives the command line, at most 200 bytes of it, or the kernel's name in brackets.
func Command(pid int) string {
	raw := readBounded(path(pid, "cmdline"))
	line := strings.TrimSpace(strings.ReplaceAll(string(raw), "\x00", " "))
	if line == "" {
		stat, _ := ReadStat(pid)
		return "[" + stat.Comm + "]"
	}
	return strings.ToValidUTF8(line[:min(len(line), 200)], "?")
}

// MountInfo gives the mounts in the process's mount namespace, a line each; 0 means the caller.
func MountInfo(pid int) []string {
	raw := readBounded(path(pid, "mountinfo"))
	return strings.Split(strings.TrimSpace(string(raw)), "\n")
}

// Namespace gives the inode of a namespace ("pid", "mnt") of the process; 0 when it cannot be read.
func Namespace(pid int, kind string) uint64 {
	target, err := os.Readlink(path(pid, filepath.Join("ns", kind)))
	if err != nil {
		return 0
	}
	inode, err := strconv.ParseUint(strings.Trim(target[strings.IndexByte(target, ':')+1:], "[]"), 10, 64)
	if err != nil {
		return 0
	}
	return inode
}

func path(pid int, file string) string {
	if pid == 0 {
		return filepath.Join("/proc/self", file)
	}
	return filepath.Join("/proc", strconv.Itoa(pid), file)
}

func readBounded(name string) []byte {
	file, err := os.Open(name)
	if err != nil {
		return nil
	}
	defer file.Close()
	raw, _ := io.ReadAll(io.LimitReader(file, maxRead))
	return raw
}
