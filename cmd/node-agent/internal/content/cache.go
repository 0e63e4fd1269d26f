package content

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

const (
	dirWhole   = "sha256"
	dirPartial = "partial"
)

var hexForm = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Part is one thing by its digest, `sha256:…`, and size in bytes.
type Part struct {
	Digest string
	Size   int64
}

func (p Part) hex() string { return strings.TrimPrefix(p.Digest, "sha256:") }

// Cache is one directory of parts. It is safe for use by many goroutines; one process at a time may have the directory.
type Cache struct {
	dir   string
	limit int64

	mu      sync.Mutex
	entries map[string]*entry
	used    int64         // bytes charged to entries
	let     chan struct{} // closed and renewed whenever something is let go
}

// entry is a part that is there, on its way, or leased.
type entry struct {
	hex   string
	size  int64 // bytes charged: what it has on the disk, or while it is leased what it will have
	whole bool
	pins  int
	last  time.Time
	turn  chan struct{} // held by who fetches it
}

// Open reads what dir holds, makes it when it is missing, and removes what is over limit, in bytes.
func Open(dir string, limit int64) (*Cache, error) {
	if limit < 1 {
		return nil, fmt.Errorf("cache: a limit of %d bytes is too small: set at least 1", limit)
	}
	c := &Cache{dir: dir, limit: limit, entries: map[string]*entry{}, let: make(chan struct{})}
	for _, kind := range []string{dirWhole, dirPartial} {
		if err := os.MkdirAll(filepath.Join(dir, kind), 0o700); err != nil {
			return nil, fmt.Errorf("create cache: %w", err)
		}
	}
	for _, kind := range []string{dirWhole, dirPartial} {
		if err := c.scan(kind); err != nil {
			return nil, fmt.Errorf("read cache: %w", err)
		}
	}
	c.evict(limit)
	return c, nil
}

// scan takes stock of one directory, and removes what is not a part.
func (c *Cache) scan(kind string) error {
	found, err := os.ReadDir(filepath.Join(c.dir, kind))
	if err != nil {
		return err
	}
	for _, item := range found {
		path := filepath.Join(c.dir, kind, item.Name())
		info, err := item.Info()
		if err != nil {
			return err
		}
		if _, both := c.entries[item.Name()]; both || !info.Mode().IsRegular() || !hexForm.MatchString(item.Name()) {
			if err := os.RemoveAll(path); err != nil {
				return err
			}
			continue
		}
		c.entries[item.Name()] = &entry{
			hex: item.Name(), size: info.Size(), whole: kind == dirWhole, last: info.ModTime(),
			turn: make(chan struct{}, 1),
		}
		c.used += info.Size()
	}
	return nil
}

func (c *Cache) whole(hex string) string   { return filepath.Join(c.dir, dirWhole, hex) }
func (c *Cache) partial(hex string) string { return filepath.Join(c.dir, dirPartial, hex) }

// evict removes what is not leased, least recently used first, until at most limit bytes are charged, and reports
// whether that was enough. The caller has c.mu locked, or is the only one that knows the cache yet.
func (c *Cache) evict(limit int64) bool {
	for _, victim := range c.idle() {
		if c.used <= limit {
			return true
		}
		c.remove(victim)
	}
	return c.used <= limit
}

func (c *Cache) idle() []*entry {
	var idle []*entry
	for _, e := range c.entries {
		if e.pins == 0 {
			idle = append(idle, e)
		}
	}
	slices.SortFunc(idle, func(a, b *entry) int { return a.last.Compare(b.last) })
	return idle
}

func (c *Cache) remove(e *entry) {
	_ = os.Remove(c.whole(e.hex))
	_ = os.Remove(c.partial(e.hex))
	c.used -= e.size
	delete(c.entries, e.hex)
}

// Lease pins the parts and reserves space for those that are missing, waiting until ctx ends for what others lease. It
// fails with DISK_FULL when the parts can never fit: into the cache's limit, or onto the disk.
func (c *Cache) Lease(ctx context.Context, parts []Part) (*Lease, error) {
	parts, total, err := distinct(parts)
	if err != nil {
		return nil, err
	}
	if total > c.limit {
		return nil, wire.Errorf(wire.CodeDiskFull,
			"the artifact has %d bytes, more than the %d that the node keeps", total, c.limit)
	}
	for {
		held, let, err := c.lease(parts)
		if held != nil || err != nil {
			return held, err
		}
		select {
		case <-let:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func distinct(parts []Part) (once []Part, total int64, err error) {
	seen := map[string]int64{}
	for _, part := range parts {
		if !hexForm.MatchString(part.hex()) || part.Size < 0 {
			return nil, 0, wire.Errorf(wire.CodeDigestMismatch, "%.80q of %d bytes is not a part of an artifact",
				part.Digest, part.Size)
		}
		size, again := seen[part.hex()]
		if again && size != part.Size {
			return nil, 0, wire.Errorf(wire.CodeDigestMismatch, "the artifact lists %s with two sizes", part.Digest)
		}
		if !again {
			seen[part.hex()] = part.Size
			once = append(once, part)
			total += part.Size
		}
	}
	return once, total, nil
}

// lease is one try: the lease, or what to wait for.
func (c *Cache) lease(parts []Part) (*Lease, <-chan struct{}, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	held := &Lease{cache: c}
	var lacking int64
	for _, part := range parts {
		held.entries = append(held.entries, c.pin(part, &lacking))
	}
	if !c.evict(c.limit) {
		c.unpin(held.entries)
		return nil, c.let, nil
	}
	if free := c.room(lacking); free < lacking {
		c.unpin(held.entries)
		return nil, nil, wire.Errorf(wire.CodeDiskFull,
			"the artifact needs %d bytes more, the node's disk has %d", lacking, free)
	}
	return held, nil, nil
}

// pin charges the part in full. A whole part whose file has the wrong size is damaged, and is fetched again.
func (c *Cache) pin(part Part, lacking *int64) *entry {
	e := c.entries[part.hex()]
	if e == nil {
		e = &entry{hex: part.hex(), turn: make(chan struct{}, 1)}
		c.entries[e.hex] = e
	}
	e.pins++
	path := c.partial(e.hex)
	if e.whole {
		path = c.whole(e.hex)
	}
	var have int64
	if info, err := os.Stat(path); err == nil {
		have = info.Size()
	}
	if e.whole && have != part.Size {
		_ = os.Remove(path)
		e.whole, have = false, 0
	}
	*lacking += max(part.Size-have, 0)
	c.used += part.Size - e.size
	e.size, e.last = part.Size, time.Now()
	return e
}

// room frees space on the disk for the wanted bytes and returns how many are free; wanted if that is unknown.
func (c *Cache) room(wanted int64) int64 {
	free := wanted
	for victims := c.idle(); ; victims = victims[1:] {
		var stat unix.Statfs_t
		if unix.Statfs(c.dir, &stat) != nil {
			return wanted
		}
		free = int64(min(stat.Bavail, 1<<40)) * stat.Bsize // #nosec G115 -- bounded
		if free >= wanted || len(victims) == 0 {
			return free
		}
		c.remove(victims[0])
	}
}

// unpin lets go. What is not whole is charged only what it has.
func (c *Cache) unpin(entries []*entry) {
	for _, e := range entries {
		e.pins--
		e.last = time.Now()
		if e.pins > 0 {
			continue
		}
		if e.whole {
			_ = os.Chtimes(c.whole(e.hex), e.last, e.last) // so that a later agent knows too
			continue
		}
		var have int64
		info, err := os.Stat(c.partial(e.hex))
		if err == nil {
			have = info.Size()
		}
		c.used += have - e.size
		e.size = have
		if errors.Is(err, fs.ErrNotExist) {
			delete(c.entries, e.hex)
		}
	}
}
