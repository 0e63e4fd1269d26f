// Package filelock takes advisory locks on files (flock(2)) between processes of one machine.
//
// The kernel drops a lock when its holder dies, so a killed program never leaves one behind; the lock file itself stays
// on disk, because removing it would let two processes hold "the" lock on two different inodes.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// Mode is whether a lock admits other holders.
type Mode int

// The two kinds of lock.
const (
	Shared    Mode = syscall.LOCK_SH // many holders at once
	Exclusive Mode = syscall.LOCK_EX // one holder, no shared ones beside it
)

// ErrBusy is returned by Try when another process holds a lock that excludes the requested one.
var ErrBusy = errors.New("lock is held by another process")

// retry is the pause between two attempts. flock(2) has no deadline of its own, and a blocking call cannot be
// cancelled.
const retry = 20 * time.Millisecond

// Lock is a lock that is held until Release, or until the process ends. Child processes do not inherit it.
type Lock struct{ file *os.File }

// Acquire waits for the lock on path, creating the file (mode 0600) when it is absent. It ends with ctx's error when
// ctx ends.
func Acquire(ctx context.Context, path string, mode Mode) (*Lock, error) {
	for {
		lock, err := Try(path, mode)
		if !errors.Is(err, ErrBusy) {
			return lock, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for lock %s: %w", path, ctx.Err())
		case <-time.After(retry):
		}
	}
}

// Try takes the lock on path at once, or answers ErrBusy.
func Try(path string, mode Mode) (*Lock, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	err = syscall.Flock(int(file.Fd()), int(mode)|syscall.LOCK_NB)
	if err == nil {
		return &Lock{file: file}, nil
	}
	_ = file.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, ErrBusy
	}
	return nil, fmt.Errorf("lock %s: %w", path, err)
}

// Release gives the lock back. It is safe on nil and safe to call twice.
func (l *Lock) Release() {
	if l != nil {
		_ = l.file.Close()
	}
}
