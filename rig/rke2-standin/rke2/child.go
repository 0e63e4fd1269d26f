package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// restartPause is how long a child that has ended is left alone before it is started again.
const restartPause = 2 * time.Second

// maxLog is the size of a log, in bytes, that is not added to any more at the next start.
const maxLog = 16 << 20

// keep keeps a program running until the context ends. It dies with this process, as RKE2's kubelet and containerd do;
// what they have started does not. What it prints goes to a file.
func keep(ctx context.Context, name, log string, env []string, path string, args ...string) error {
	if err := os.MkdirAll(filepath.Dir(log), 0o755); err != nil {
		return err
	}
	if info, err := os.Stat(log); err == nil && info.Size() > maxLog {
		_ = os.Remove(log)
	}
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	go func() {
		runtime.LockOSThread() // the parent-death signal follows this thread
		for ctx.Err() == nil {
			command := exec.Command(path, args...)
			command.Args[0] = name
			command.Env = append(os.Environ(), env...)
			command.Stdout, command.Stderr = out, out
			command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
			if err := command.Start(); err != nil {
				fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
			} else {
				ended := make(chan error, 1)
				go func() { ended <- command.Wait() }()
				select {
				case <-ctx.Done():
					_ = command.Process.Signal(syscall.SIGTERM)
					select {
					case <-ended:
					case <-time.After(5 * time.Second):
						_ = command.Process.Kill()
						<-ended
					}
					return
				case err := <-ended:
					fmt.Fprintf(os.Stderr, "%s exited: %v\n", name, err)
				}
			}
			wait(ctx, restartPause)
		}
	}()
	return nil
}

// wait pauses, and reports whether the context still holds.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// until calls try until it succeeds or the context ends, and says every few seconds what it waits for.
func until(ctx context.Context, what string, try func(context.Context) error) error {
	for said := time.Now(); ; {
		bounded, cancel := context.WithTimeout(ctx, 10*time.Second)
		err := try(bounded)
		cancel()
		if err == nil {
			return nil
		}
		if time.Since(said) > 5*time.Second {
			said = time.Now()
			fmt.Fprintf(os.Stderr, "waiting for %s: %v\n", what, err)
		}
		if !wait(ctx, 200*time.Millisecond) {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
}
