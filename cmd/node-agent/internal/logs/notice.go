package logs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// The changes of a folder that followers wait for: that it grows, and that something in it is removed. The kernel
// reports no removal of a folder that is open.
const (
	grows = unix.IN_MODIFY | unix.IN_CREATE | unix.IN_ONLYDIR
	loses = unix.IN_DELETE | unix.IN_ONLYDIR
)

// notices wakes followers when the kernel reports that a folder's files have changed. All share one inotify instance,
// of which a user may have few.
type notices struct {
	file *os.File

	mu      sync.Mutex
	waiting map[int32]map[*waiter]bool
}

// waiter is one follower.
type waiter struct {
	wake    chan struct{} // of capacity 1, so that no notice is lost while the follower reads
	watches []int32
}

func newNotices() (*notices, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("follow logs: %w", err)
	}
	n := &notices{file: os.NewFile(uintptr(fd), "inotify"), waiting: map[int32]map[*waiter]bool{}}
	go n.read()
	return n, nil
}

func (n *notices) close() { _ = n.file.Close() }

// add wakes the follower at changes of an open folder. All that wait for one folder wait for the same changes.
func (n *notices) add(w *waiter, folder *os.File, changes uint32) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	raw, err := n.file.SyscallConn()
	if err != nil {
		return fmt.Errorf("follow logs: %w", err)
	}
	var watch int
	path := fmt.Sprintf("/proc/self/fd/%d", folder.Fd()) // the very folder, whatever has its name by now
	controlErr := raw.Control(func(fd uintptr) { watch, err = unix.InotifyAddWatch(int(fd), path, changes) })
	if err = errors.Join(err, controlErr); err != nil {
		return fmt.Errorf("follow logs: %w", err)
	}
	key := int32(watch) // #nosec G115 -- the kernel numbers watches by an int
	if n.waiting[key] == nil {
		n.waiting[key] = map[*waiter]bool{}
	}
	n.waiting[key][w] = true
	w.watches = append(w.watches, key)
	return nil
}

// drop ends a follower's watches, and those of the kernel that no one else needs.
func (n *notices) drop(w *waiter) {
	n.mu.Lock()
	defer n.mu.Unlock()
	raw, err := n.file.SyscallConn()
	for _, key := range w.watches {
		delete(n.waiting[key], w)
		if len(n.waiting[key]) > 0 || err != nil {
			continue
		}
		delete(n.waiting, key)
		_ = raw.Control(func(fd uintptr) {
			_, _ = unix.InotifyRmWatch(int(fd), uint32(key)) // #nosec G115 -- as the kernel numbered it
		})
	}
	w.watches = nil
}

// read ends when the instance is closed.
func (n *notices) read() {
	buffer := make([]byte, 64<<10)
	for {
		size, err := n.file.Read(buffer)
		if err != nil {
			return
		}
		for events := buffer[:size]; len(events) >= unix.SizeofInotifyEvent; {
			watch := int32(binary.NativeEndian.Uint32(events)) // #nosec G115 -- as the kernel numbered it
			mask := binary.NativeEndian.Uint32(events[4:])
			name := binary.NativeEndian.Uint32(events[12:])
			events = events[unix.SizeofInotifyEvent+int(name):]
			n.wake(watch, mask)
		}
	}
}

// wake wakes the followers of a folder, or all of them when the kernel has dropped notices.
func (n *notices) wake(watch int32, mask uint32) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for key, waiters := range n.waiting {
		if key != watch && mask&unix.IN_Q_OVERFLOW == 0 {
			continue
		}
		for w := range waiters {
			select {
			case w.wake <- struct{}{}:
			default:
			}
		}
	}
}
