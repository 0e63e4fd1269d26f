// Package reaper starts the children of a process that inherits those of others, and collects whatever ends.
package reaper

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Reaper starts children and collects whatever ends, its own children and those that fell to it. There
// is one in a process, and nothing beside it may wait for children.
type Reaper struct {
	mu      sync.Mutex
	waiting map[int]chan int // pid → exit code, buffered
}

// New returns a reaper that knows no child.
func New() *Reaper { return &Reaper{waiting: map[int]chan int{}} }

// Start executes a program. The lock is held over the fork, so that a child that ends at once is not
// collected before it is known. The channel gives the exit code once: 128 + n for signal n.
func (r *Reaper) Start(child Child) (pid int, ended <-chan int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	files := make([]uintptr, len(child.Files))
	for i, file := range child.Files {
		files[i] = file.Fd()
	}
	pid, err = syscall.ForkExec(child.Path, child.Args, &syscall.ProcAttr{
		Dir: child.Dir, Env: child.Env, Files: files,
		Sys: &syscall.SysProcAttr{Setsid: true, Setctty: child.TTY, Credential: child.Credential},
	})
	if err != nil {
		return 0, nil, fmt.Errorf("start %s: %w", child.Path, err)
	}
	done := make(chan int, 1)
	r.waiting[pid] = done
	return pid, done, nil
}

// Child is a program to start in a session of its own.
type Child struct {
	Path       string
	Args       []string
	Dir        string
	Env        []string
	Files      []*os.File // descriptors 0 and on
	Credential *syscall.Credential
	TTY        bool // the first file is its controlling terminal
}

// Run collects until ctx ends. The tick covers a signal lost to the channel's bound.
func (r *Reaper) Run(ctx context.Context) {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, unix.SIGCHLD)
	defer signal.Stop(signals)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		r.collect()
		select {
		case <-signals:
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (r *Reaper) collect() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		if done, ok := r.waiting[pid]; ok {
			delete(r.waiting, pid)
			done <- exitCode(status)
		}
	}
}

func exitCode(status unix.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}
