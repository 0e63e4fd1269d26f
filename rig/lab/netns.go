package lab

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// newNetNS makes a network namespace that lives as long as the answered descriptor (and whatever is inside).
func newNetNS() (*os.File, error) {
	type result struct {
		file *os.File
		err  error
	}
	made := make(chan result)
	go func() {
		// The thread is spoilt for everybody else: never unlocked, it ends with the goroutine.
		runtime.LockOSThread()
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			made <- result{nil, fmt.Errorf("unshare network: %w", err)}
			return
		}
		file, err := os.Open(fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()))
		made <- result{file, err}
	}()
	r := <-made
	return r.file, r.err
}

// inNetNS runs f on a thread inside the namespace. Sockets and child processes that f makes on its own goroutine stay
// inside.
func inNetNS(ns *os.File, f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- fmt.Errorf("enter network namespace: %w", err)
			return
		}
		done <- f()
	}()
	return <-done
}

// ip runs ip(8) commands inside a namespace, in one process.
func ip(ctx context.Context, ns *os.File, commands ...string) error {
	return inNetNS(ns, func() error {
		cmd := exec.CommandContext(ctx, "ip", "-batch", "-")
		cmd.Stdin = strings.NewReader(strings.Join(commands, "\n") + "\n")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("ip: %w: %s", err, bytes.TrimSpace(out))
		}
		return nil
	})
}
