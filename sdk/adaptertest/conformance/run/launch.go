// Package run holds the input of a run of the conformance suite and the results of its clauses:
// options, bounds, the launcher of an adapter, and results. Package conformance has aliases of all
// of it.
package run

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/gpuaas/app-platform/sdk/loopback"
)

// Launcher starts the adapter and ends it as kill -9 does. The suite calls it from one goroutine.
type Launcher interface {
	// Start starts the adapter, with whatever an earlier run of it left on disk, trusting the
	// platform at this URL, and returns the adapter's address. It need not wait until it answers.
	Start(ctx context.Context, platform string) (address string, err error)
	// Kill ends it at once, without a chance to write anything. Safe when it does not run.
	Kill() error
	// Output returns the end of what it has written to standard output and error.
	Output() string
}

// maxLog is how much of an adapter's output is kept, in bytes.
const maxLog = 1 << 20

// Command is a [Launcher] of a command line, run by the shell. It finds in its environment:
//
//	PLATFORM_URL       the platform: issuer, key set below it, public API
//	ADAPTER_NAME       its registered name
//	ADAPTER_LISTEN     host:port to listen on
//	ADAPTER_STATE_DIR  a directory that outlives the kill
type Command struct {
	// Line is the command, such as "bin/adapter --listen $ADAPTER_LISTEN".
	Line string
	// Name is the adapter's registered name.
	Name string
	// URL is the address to listen on; empty means a free address of the loopback.
	URL string
	// StateDir is its state directory, which must exist.
	StateDir string

	mu    sync.Mutex
	cmd   *exec.Cmd
	ended chan struct{} // closed when cmd has ended
	log   logTail
}

// Start implements [Launcher].
func (c *Command) Start(_ context.Context, platform string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cmd != nil {
		return "", errors.New("the adapter is already started: kill it before you start it again")
	}
	address, err := c.address()
	if err != nil {
		return "", err
	}
	dir, err := filepath.Abs(c.StateDir)
	if err != nil {
		return "", fmt.Errorf("state directory: %w", err)
	}
	cmd := exec.Command("sh", "-c", c.Line)
	cmd.Env = append(
		os.Environ(), "PLATFORM_URL="+platform, "ADAPTER_NAME="+c.Name, "ADAPTER_LISTEN="+address,
		"ADAPTER_STATE_DIR="+dir,
	)
	cmd.Stdout, cmd.Stderr = &c.log, &c.log
	cmd.SysProcAttr, cmd.WaitDelay = &syscall.SysProcAttr{Setpgid: true}, time.Second
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("start the adapter: %w", err)
	}
	c.cmd, c.ended = cmd, make(chan struct{})
	go func(ended chan struct{}) {
		defer close(ended)
		_ = cmd.Wait() // how it ended is in its output
	}(c.ended)
	return c.URL, nil
}

// Alive reports whether the command runs: one that ended by itself will not answer.
func (c *Command) Alive() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cmd == nil {
		return false
	}
	select {
	case <-c.ended:
		return false
	default:
		return true
	}
}

// address returns the address that the adapter shall listen on; the first start chooses it.
func (c *Command) address() (string, error) {
	if c.URL == "" {
		address, err := loopback.Address()
		if err != nil {
			return "", err
		}
		c.URL = "http://" + address
	}
	at, err := url.Parse(c.URL)
	if err != nil || at.Host == "" {
		return "", fmt.Errorf("%w: url: %q is not a URL", ErrOptions, c.URL)
	}
	return at.Host, nil
}

// Kill implements [Launcher]: it kills the whole process group and waits for its end.
func (c *Command) Kill() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cmd == nil {
		return nil
	}
	cmd := c.cmd
	c.cmd = nil
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("kill the adapter: %w", err)
	}
	<-c.ended
	return nil
}

// Output implements [Launcher].
func (c *Command) Output() string { return c.log.String() }

// logTail keeps the last [maxLog] bytes written to it.
type logTail struct {
	mu   sync.Mutex
	kept []byte
}

// Write implements io.Writer and never fails.
func (t *logTail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - maxLog; over > 0 {
		t.kept = append([]byte{}, t.kept[over:]...)
	}
	return len(p), nil
}

// String returns the kept bytes.
func (t *logTail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.kept)
}
