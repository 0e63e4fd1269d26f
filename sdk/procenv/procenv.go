// Package procenv reads the environments of this machine's processes, which distinguish the processes of a member from
// all others. Linux shows an empty environment while a process executes another program; the package waits until that
// has passed, as it would otherwise miss a process of the member.
package procenv

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	// maxSize bounds what is read of one environment, in bytes.
	maxSize = 1 << 20
	// patience bounds the wait for a process that is being replaced.
	patience = 10 * time.Second
	// pause is the time between two readings of such a process.
	pause = time.Millisecond
	// kernelThread is the flag of a thread of the kernel, which has no environment (PF_KTHREAD in Linux's sched.h).
	kernelThread = 0x00200000
)

// Has reports whether a process was started with exactly this NAME=value; false for a process that has ended.
func Has(pid int, assignment string) bool {
	wanted := []byte("\x00" + assignment + "\x00")
	return bytes.Contains(append(append([]byte{0}, Of(pid)...), 0), wanted)
}

// Of returns the environment that a process was started with, each NAME=value ended by a zero byte, at most 1 MiB of
// it; nothing when the process has ended, may not be read, or has no environment.
func Of(pid int) []byte {
	for end := time.Now().Add(patience); ; time.Sleep(pause) {
		environ, err := read(pid, "environ")
		if err != nil || len(environ) > 0 || !unsettled(pid) || time.Now().After(end) {
			return environ
		}
	}
}

// unsettled reports whether an environment that was just read as empty is not a process's own: the process has none
// yet, or has another one by now. The fields are those of proc_pid_stat(5), counted from the state.
func unsettled(pid int) bool {
	const state, flags, startCode, envStart, envEnd = 0, 6, 23, 47, 48
	raw, err := read(pid, "stat")
	if err != nil {
		return false
	}
	fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
	if len(fields) <= envEnd || fields[state] == "Z" || fields[state] == "X" {
		return false
	}
	set, err := strconv.ParseUint(fields[flags], 10, 64)
	none := fields[startCode] != "0" && fields[envStart] == fields[envEnd] // the start of the code is set last
	return err == nil && set&kernelThread == 0 && !none
}

func read(pid int, name string) ([]byte, error) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/%s", pid, name))
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return io.ReadAll(io.LimitReader(file, maxSize))
}
