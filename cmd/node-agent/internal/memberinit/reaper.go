package memberinit

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

// reaper starts children and collects whatever ends, its own children and those that fell to it. There
// is one in a process, and nothing beside it may wait for children.
type reaper struct {
	mu      sync.Mutex
	waiting map[int]chan int // pid → exit code, buffered
}

func newReaper() *reaper { return &reaper{waiting: map[int]chan int{}} }

// start executes a program. The lock is held over the fork, so that a child that ends at once is not
// collected before it is known. The channel gives the exit code once: 128 + n for signal n.
func (r *reaper) start(spec childSpec) (pid int, ended <-chan int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	files := make([]uintptr, len(spec.files))
	for i, file := range spec.files {
		files[i] = file.Fd()
	}
	pid, err = syscall.ForkExec(spec.path, spec.args, &syscall.ProcAttr{
		Dir: spec.dir, Env: spec.env, Files: files,
		Sys: &syscall.SysProcAttr{Setsid: true, Setctty: spec.tty, Credential: spec.credential},
	})
	if err != nil {
		return 0, nil, fmt.Errorf("start %s: %w", spec.path, err)
	}
	done := make(chan int, 1)
	r.waiting[pid] = done
	return pid, done, nil
}

// childSpec is a program to start in a session of its own.
type childSpec struct {
	path       string
	args       []string
	dir        string
	env        []string
	files      []*os.File
	credential *syscall.Credential
	tty        bool // the first file is its controlling terminal
}

// run collects until ctx ends. The tick covers a signal lost to the channel's bound.
func (r *reaper) run(ctx context.Context) {
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

func (r *reaper) collect() {
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
