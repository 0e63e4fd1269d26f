// Package idrange gives members ranges of user and group ids of their own. A file names the member of each range. It is
// written before anything belongs to the range, and removed after the last file of the member: an id that is used again
// owns nothing that is left.
package idrange

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

const (
	// Size is how many ids a member has, from 0.
	Size = 65_536
	// DefaultFirst is where ranges begin unless the node says otherwise: far above accounts and /etc/subuid.
	DefaultFirst = 1 << 30
	// last is the highest id that there is; the one above means "no change" to the kernel.
	last = 1<<32 - 2
)

// Range is the ids of one member: First on the node is 0 in the member.
type Range struct{ First uint32 }

// Allocator gives ranges out. It is safe for use by many goroutines of one process.
type Allocator struct {
	dir   string
	first uint32
	count uint32
	start uint32
	taken []span // of the node's own subordinate ids
	mu    sync.Mutex
}

type span struct{ from, to uint64 }

// Open reads who has which range from dir. First is where ranges begin, 0 for DefaultFirst; count bounds how many there
// are, 0 for all up to the last id. Where the search for a free range starts depends on dir, so that the agents of
// several nodes on one kernel rarely have the same.
func Open(dir string, first, count uint32) (*Allocator, error) {
	if first == 0 {
		first = DefaultFirst
	}
	if first < Size {
		return nil, fmt.Errorf("id-first: %d is below %d, where the node's own accounts are", first, Size)
	}
	if most := (last - first + 1) / Size; count == 0 || count > most {
		count = most
	}
	if count == 0 {
		return nil, fmt.Errorf("id-first: there is no range of %d ids from %d on", Size, first)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open id ranges: %w", err)
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(dir))
	a := &Allocator{dir: dir, first: first, count: count, start: hash.Sum32() % count}
	for _, name := range []string{"/etc/subuid", "/etc/subgid"} {
		a.taken = append(a.taken, subordinate(name)...)
	}
	return a, nil
}

// subordinate reads a file of name:first:count lines; one that is missing has none.
func subordinate(name string) (spans []span) {
	raw, _ := os.ReadFile(name)
	for line := range strings.Lines(string(raw)) {
		fields := strings.Split(strings.TrimSpace(line), ":")
		if len(fields) != 3 {
			continue
		}
		from, errFrom := strconv.ParseUint(fields[1], 10, 32)
		count, errCount := strconv.ParseUint(fields[2], 10, 32)
		if errFrom == nil && errCount == nil && count > 0 {
			spans = append(spans, span{from, from + count - 1})
		}
	}
	return spans
}

// Take gives the member its range: the one that it has, or a free one.
func (a *Allocator) Take(member string) (Range, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	held, err := a.read()
	if err != nil {
		return Range{}, err
	}
	for index, owner := range held {
		if owner == member {
			return a.at(index), nil
		}
	}
	for i := range a.count {
		index := (a.start + i) % a.count
		if _, ok := held[index]; ok || a.foreign(a.at(index)) {
			continue
		}
		return a.at(index), a.write(index, member)
	}
	return Range{}, wire.Errorf(wire.CodeMemberIDsExhausted,
		"all %d id ranges of the node are in use; remove members of it, or start its agent with a lower --id-first",
		a.count)
}

// Of gives the range that the member has; false when it has none.
func (a *Allocator) Of(member string) (Range, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	held, _ := a.read()
	for index, owner := range held {
		if owner == member {
			return a.at(index), true
		}
	}
	return Range{}, false
}

// Free lets the member's range be used again. The caller has proved that nothing of the member is left.
func (a *Allocator) Free(member string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	held, err := a.read()
	for index, owner := range held {
		if owner == member {
			err = errors.Join(err, os.Remove(a.file(index)))
		}
	}
	return err
}

// Members lists those that have a range.
func (a *Allocator) Members() ([]string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	held, err := a.read()
	var members []string
	for _, owner := range held {
		members = append(members, owner)
	}
	return members, err
}

func (a *Allocator) at(index uint32) Range { return Range{First: a.first + index*Size} }

func (a *Allocator) file(index uint32) string {
	return filepath.Join(a.dir, strconv.FormatUint(uint64(a.at(index).First), 10))
}

func (a *Allocator) foreign(r Range) bool {
	for _, one := range a.taken {
		if uint64(r.First) <= one.to && one.from < uint64(r.First)+Size {
			return true
		}
	}
	return false
}

// read returns the member of each index that is taken.
func (a *Allocator) read() (map[uint32]string, error) {
	entries, err := os.ReadDir(a.dir)
	if err != nil {
		return nil, fmt.Errorf("read id ranges: %w", err)
	}
	held := map[uint32]string{}
	for _, entry := range entries {
		first, err := strconv.ParseUint(entry.Name(), 10, 32)
		if err != nil || first < uint64(a.first) {
			continue
		}
		owner, err := os.ReadFile(filepath.Join(a.dir, entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("read id ranges: %w", err)
		}
		held[uint32((first-uint64(a.first))/Size)] = string(owner) // #nosec G115 -- below 2^32
	}
	return held, nil
}

// write is durable and never replaces another's claim.
func (a *Allocator) write(index uint32, member string) error {
	file, err := os.OpenFile(a.file(index), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("take id range: another process took it meanwhile")
	}
	if err != nil {
		return fmt.Errorf("take id range: %w", err)
	}
	_, err = file.WriteString(member)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		_ = os.Remove(a.file(index)) // on a full disk a claim without its member would keep the range from all
		return fmt.Errorf("take id range: %w", err)
	}
	return nil
}
