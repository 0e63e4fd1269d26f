package health

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// What counts as little: a share of the whole, but never more than so much, since 5 % of a large disk is plenty. Twice
// as much is a warning.
const (
	littleShare  = 20       // one part in
	littleDisk   = 10 << 30 // bytes
	littleMemory = 1 << 30
	littleFiles  = 100_000 // inodes
)

// scarce is the state of a stock of which so much is free.
func scarce(free, whole, most uint64) gql.NodeConditionState {
	little := min(whole/littleShare, most)
	switch {
	case free < little:
		return gql.NodeConditionStateBad
	case free < 2*little:
		return gql.NodeConditionStateWarning
	}
	return gql.NodeConditionStateGood
}

// disk checks the file system of the agent's state: bytes, files, and whether it can be written at all.
func disk(dir string) gql.NodeConditionInput {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return found("disk", gql.NodeConditionStateBad, "the disk of the agent's state cannot be read: %s", err)
	}
	if stat.Flags&unix.ST_RDONLY != 0 {
		return found("disk", gql.NodeConditionStateBad, "the disk of the agent's state is read-only")
	}
	size := uint64(stat.Bsize) // #nosec G115 -- a block's size
	free, whole := stat.Bavail*size, stat.Blocks*size
	if state := scarce(free, whole, littleDisk); state != gql.NodeConditionStateGood {
		return found("disk", state, "%s of %s are free on the disk of the agent's state", gib(free), gib(whole))
	}
	if stat.Files > 0 { // some file systems count none
		if state := scarce(stat.Ffree, stat.Files, littleFiles); state != gql.NodeConditionStateGood {
			return found("disk", state, "%d of %d files are left on the disk of the agent's state", stat.Ffree,
				stat.Files)
		}
	}
	return found("disk", gql.NodeConditionStateGood, "%s of %s are free", gib(free), gib(whole))
}

// memory checks what the kernel calls available.
func memory(root string) gql.NodeConditionInput {
	raw, err := os.ReadFile(filepath.Join(root, "proc/meminfo")) // #nosec G304 -- the kernel's own file
	free, known := kib(raw, "MemAvailable:")
	whole, sized := kib(raw, "MemTotal:")
	if err != nil || !known || !sized {
		return found("memory", gql.NodeConditionStateUnknown, "the kernel does not report how much memory is available")
	}
	return found("memory", scarce(free, whole, littleMemory), "%s of %s are available", gib(free), gib(whole))
}

// kib is a line of /proc/meminfo, in bytes.
func kib(raw []byte, name string) (uint64, bool) {
	for line := range bytes.Lines(raw) {
		if fields := bytes.Fields(line); len(fields) >= 2 && string(fields[0]) == name {
			value, err := strconv.ParseUint(string(fields[1]), 10, 64)
			return value << 10, err == nil
		}
	}
	return 0, false
}

// gib is an amount for people, with one digit: words that change with every byte would be news each time.
func gib(amount uint64) string {
	return strconv.FormatFloat(float64(amount)/(1<<30), 'f', 1, 64) + " GiB"
}

// How far the node's clock may be from the platform's: credentials and signed requests are judged by time.
const (
	clockWarns = 2 * time.Second
	clockFails = 30 * time.Second
	clockStale = 2 * time.Minute // a comparison is worth nothing after
)

// clock compares the node's clock with the platform's.
type clock struct {
	mu    sync.Mutex
	off   time.Duration // certainly; 0 when the difference may be the way's
	heard time.Time
}

// compare takes one answer's time. What the way may have taken counts for the clock.
func (k *clock) compare(theirs, sent, received time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.heard = received
	switch {
	case theirs.Before(sent):
		k.off = sent.Sub(theirs)
	case theirs.After(received):
		k.off = received.Sub(theirs)
	default:
		k.off = 0
	}
}

func (k *clock) condition(now time.Time) gql.NodeConditionInput {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.heard.IsZero() || now.Sub(k.heard) > clockStale {
		return found("clock", gql.NodeConditionStateWarning, "the clock was not compared with the platform's recently")
	}
	way := "behind"
	off := -k.off
	if k.off > 0 {
		way, off = "ahead of", k.off
	}
	switch {
	case off >= clockFails:
		return found("clock", gql.NodeConditionStateBad, "the clock is %s %s the platform's: set it",
			off.Round(time.Second), way)
	case off >= clockWarns:
		return found("clock", gql.NodeConditionStateWarning, "the clock is %s %s the platform's",
			off.Round(time.Second), way)
	}
	return found("clock", gql.NodeConditionStateGood, "the clock is the platform's within %s", clockWarns)
}
