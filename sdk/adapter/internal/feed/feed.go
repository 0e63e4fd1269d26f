package feed

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter/contract"
)

// maxPageBytes keeps a page of the feed, with its frame, below [contract.MaxBody].
const maxPageBytes = contract.MaxBody - 64<<10

// Feed is the change feed: the newest status of every operation, each with the version of its
// last change. Only the newest matters, so it needs no history and a slow reader costs nothing.
//
// A version is never given twice, also not after a crash: the counter starts each time above a
// ceiling on disk that is raised in blocks before it is reached. So a cursor outlives a restart.
type Feed struct {
	mu      sync.Mutex
	epoch   string
	next    uint64
	ceiling uint64
	raise   func(ceiling uint64) error
	items   map[string]feedItem
	changed chan struct{}
}

type feedItem struct {
	version uint64
	status  contract.Status
}

// ceilingBlock is how many versions are reserved by one write.
const ceilingBlock = 1 << 16

// New returns an empty feed of an epoch. It gives versions above the ceiling, and calls raise before it passes one.
func New(epoch string, ceiling uint64, raise func(uint64) error) *Feed {
	return &Feed{
		epoch: epoch, next: ceiling, ceiling: ceiling, raise: raise,
		items: make(map[string]feedItem), changed: make(chan struct{}),
	}
}

// Reserve has versions to give reserved before the first is needed: an adapter whose disk is full does not start, and
// one that runs has some left until there is space again.
func (f *Feed) Reserve() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reserve()
}

func (f *Feed) reserve() error {
	if err := f.raise(f.next + ceilingBlock); err != nil {
		return fmt.Errorf("raise feed ceiling: %w", err)
	}
	f.ceiling = f.next + ceilingBlock
	return nil
}

// Put publishes a status under a new version and wakes the readers.
func (f *Feed) Put(status contract.Status) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.next+ceilingBlock/2 >= f.ceiling {
		if err := f.reserve(); err != nil && f.next+1 >= f.ceiling {
			return err
		}
	}
	f.next++
	f.items[status.OperationID] = feedItem{version: f.next, status: status}
	close(f.changed)
	f.changed = make(chan struct{})
	return nil
}

// Mark is a version that nothing given out so far exceeds; it is journalled with a terminal status.
func (f *Feed) Mark() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ceiling + ceilingBlock
}

// Restore puts back a terminal status that an earlier process journalled with mark. A reader
// that had it may read it again; one that had not cannot miss it.
func (f *Feed) Restore(status contract.Status, mark uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.items[status.OperationID] = feedItem{version: min(mark, f.next), status: status}
}

// Drop forgets an operation.
func (f *Feed) Drop(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.items, id)
}

// Get returns the newest status of an operation; false when the feed has none.
func (f *Feed) Get(id string) (contract.Status, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	item, ok := f.items[id]
	return item.status, ok
}

// Wait returns the page after cursor, waiting up to d for it not to be empty.
func (f *Feed) Wait(ctx context.Context, cursor string, d time.Duration) (contract.OperationsPage, error) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		page, changed, err := f.Page(cursor)
		// No channel to wait on: the cursor is foreign, and its holder needs a new one at once.
		if err != nil || len(page.Operations) > 0 || changed == nil {
			return page, err
		}
		select {
		case <-changed:
		case <-timer.C:
			return page, nil
		case <-ctx.Done():
			return page, nil
		}
	}
}

// Page returns the changes after a cursor, and a channel that is closed at the next change.
func (f *Feed) Page(cursor string) (contract.OperationsPage, <-chan struct{}, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	after, same, err := f.parse(cursor)
	if err != nil {
		return contract.OperationsPage{}, nil, err
	}
	var list []feedItem
	for _, item := range f.items {
		if item.version > after && (same || !item.status.State.Terminal()) {
			list = append(list, item)
		}
	}
	slices.SortFunc(list, func(a, b feedItem) int { return cmp.Compare(a.version, b.version) })
	page := contract.OperationsPage{Epoch: f.epoch, Operations: []contract.Status{}}
	last, whole := fill(&page, list)
	// A foreign cursor's page leaves out what has ended; only when it holds all the rest may the
	// new cursor skip that.
	if whole && !same {
		last = f.next
	}
	page.Cursor = f.format(max(last, after), same || whole)
	if !same {
		return page, nil, nil
	}
	return page, f.changed, nil
}

// fill adds statuses until the page is full. It returns the last version added and whether all fitted.
func fill(page *contract.OperationsPage, list []feedItem) (last uint64, whole bool) {
	size := 0
	for i, item := range list {
		raw, err := json.Marshal(item.status)
		if err != nil {
			continue
		}
		if size += len(raw); i == contract.MaxPage || (i > 0 && size > maxPageBytes) {
			return last, false
		}
		page.Operations = append(page.Operations, item.status)
		last = item.version
	}
	return last, true
}

// Cursors are EPOCH:VERSION. One ending in "!" continues a first page that did not hold
// everything: it still asks only for what has not ended.
func (f *Feed) format(version uint64, same bool) string {
	cursor := f.epoch + ":" + strconv.FormatUint(version, 10)
	if !same {
		cursor += "!"
	}
	return cursor
}

func (f *Feed) parse(cursor string) (after uint64, same bool, err error) {
	if cursor == "" {
		return 0, false, nil
	}
	number, partial := strings.CutSuffix(cursor, "!")
	epoch, number, found := strings.Cut(number, ":")
	after, bad := strconv.ParseUint(number, 10, 64)
	if !found || bad != nil || len(cursor) > 128 {
		return 0, false, contract.Invalid("after", "is not a cursor of this feed")
	}
	if epoch != f.epoch || after > f.next {
		return 0, false, nil
	}
	return after, !partial, nil
}
