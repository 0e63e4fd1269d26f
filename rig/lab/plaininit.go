package lab

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"syscall"
	"time"
)

// endLimit bounds the end of a plain node: a process stuck in the kernel cannot be waited for for ever.
const endLimit = 10 * time.Second

// endDescendants kills children until none is left. An orphan of a killed child becomes a child of this subreaper, so
// the rounds end when every descendant has ended.
func (p *initProcess) endDescendants() {
	p.mu.Lock() // no more spawning or reaping elsewhere
	for deadline := time.Now().Add(endLimit); time.Now().Before(deadline); {
		for _, pid := range childrenOf(os.Getpid()) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		_, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if errors.Is(err, syscall.ECHILD) {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// childrenOf reads the process table: the kernel's own list of children is not compiled in everywhere.
func childrenOf(parent int) (pids []int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err == nil && parentOf(pid) == parent {
			pids = append(pids, pid)
		}
	}
	return pids
}

// parentOf returns 0 for a process that has ended.
func parentOf(pid int) int {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	// "pid (name) state ppid …": the name may hold anything, also parentheses.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(string(fields[1]))
	return parent
}
