package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/procfs"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/roster"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/thread"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

const (
	// helloPatience bounds how long a living init may take to answer.
	helloPatience = 10 * time.Second
	// dyingPatience is how long a broken connection waits to see whether the init died.
	dyingPatience = time.Second
	// placeBuffer is how much of a placed file is in memory at once, in bytes.
	placeBuffer = 256 << 10
)

// Client talks to one life of one member's init. It holds no connection and needs no closing.
type Client struct {
	dir   string
	known roster.Record
}

// Epoch names the life of the init that this client talks to.
func (c *Client) Epoch() string { return c.known.Epoch }

// connect checks that the init answers and speaks this protocol.
func connect(ctx context.Context, dir string, known roster.Record) (*Client, error) {
	c := &Client{dir: dir, known: known}
	ctx, cancel := context.WithTimeout(ctx, helloPatience)
	defer cancel()
	answer, err := c.call(ctx, wire.Request{Op: wire.OpHello})
	if err != nil {
		return nil, err
	}
	if answer.Hello == nil || answer.Hello.Version != wire.Version {
		return nil, wire.Errorf(wire.CodeProtocolUnknown,
			"the member's init does not use protocol %d; tear the member down", wire.Version)
	}
	return c, nil
}

// dial reaches the socket through its directory's descriptor: a socket's path may not be long.
func (c *Client) dial(ctx context.Context) (net.Conn, error) {
	dir, err := os.Open(filepath.Join(c.dir, memberinit.DirRun))
	if err != nil {
		return nil, c.lost(ctx, err)
	}
	defer dir.Close()
	path := fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), memberinit.SocketName)
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, c.lost(ctx, err)
	}
	return conn, nil
}

// lost makes an error honest: a broken connection to a dead init is a lost sandbox. A dying init closes its sockets a
// moment before its process has ended.
func (c *Client) lost(ctx context.Context, err error) error {
	failed := wire.Errorf(wire.CodeSandboxFailed, "the member's init does not answer: %v", err)
	if ctx.Err() != nil {
		return errors.Join(context.Cause(ctx), failed)
	}
	if procfs.WaitGone(c.known.InitPID, c.known.InitStart, dyingPatience) {
		return errLost()
	}
	return failed
}

// SetHostname gives the member a host name, from outside: in it nothing has the right.
func (c *Client) SetHostname(name string) error {
	names, err := os.Open(fmt.Sprintf("/proc/%d/ns/uts", c.known.InitPID))
	if err != nil {
		return errLost()
	}
	defer names.Close()
	err = thread.Apart(func() error {
		if err := unix.Setns(int(names.Fd()), unix.CLONE_NEWUTS); err != nil {
			return err
		}
		return unix.Sethostname([]byte(name))
	})
	if err != nil {
		return wire.Errorf(wire.CodeSandboxFailed, "name the member %q: %v", name, err)
	}
	return nil
}

// call is one request with one answer.
func (c *Client) call(ctx context.Context, request wire.Request) (wire.Response, error) {
	conn, err := c.dial(ctx)
	if err != nil {
		return wire.Response{}, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	var answer wire.Response
	if err = wire.Write(conn, request); err == nil {
		err = wire.Read(conn, &answer)
	}
	if err != nil {
		return answer, c.lost(ctx, err)
	}
	if answer.Error != nil {
		return answer, answer.Error
	}
	return answer, nil
}

// Run starts the run or attaches to it and gives its result; output is handed on as it comes, each
// stream from its beginning, at most wire.StreamCap bytes of it. When ctx ends, the run goes on.
func (c *Client) Run(ctx context.Context, run wire.Run, output func(wire.Output)) (wire.RunResult, error) {
	conn, err := c.dial(ctx)
	if err != nil {
		return wire.RunResult{}, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if err := wire.Write(conn, wire.Request{Op: wire.OpRun, Run: &run}); err != nil {
		return wire.RunResult{}, c.lost(ctx, err)
	}
	for {
		var answer wire.Response
		if err := wire.Read(conn, &answer); err != nil {
			return wire.RunResult{}, c.lost(ctx, err)
		}
		switch {
		case answer.Error != nil:
			return wire.RunResult{}, answer.Error
		case answer.Result != nil:
			return *answer.Result, nil
		case answer.Output != nil:
			output(*answer.Output)
		}
	}
}

// Exec starts an interactive command and returns its connection, which carries the frames of wire.Exec. The command
// ends when the connection is closed.
func (c *Client) Exec(ctx context.Context, command wire.Exec) (net.Conn, error) {
	conn, err := c.dial(ctx)
	if err != nil {
		return nil, err
	}
	if err = wire.Write(conn, wire.Request{Op: wire.OpExec, Exec: &command}); err == nil {
		err = c.confirmed(ctx, conn, nil)
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// Cancel kills a run, whose result then reports it. An unknown run is not an error.
func (c *Client) Cancel(ctx context.Context, key string) error {
	_, err := c.call(ctx, wire.Request{Op: wire.OpCancel, Key: key})
	return err
}

// Ack lets the init forget a result.
func (c *Client) Ack(ctx context.Context, key string) error {
	_, err := c.call(ctx, wire.Request{Op: wire.OpAck, Key: key})
	return err
}

// WriteFile writes one file in the member's root.
func (c *Client) WriteFile(ctx context.Context, file wire.File) error {
	_, err := c.call(ctx, wire.Request{Op: wire.OpWrite, File: &file})
	return err
}

// Place writes one file of exactly size bytes in the member's root as they are read from content, 256 KiB at a time.
// The file exists once content ended at size bytes, and not at all otherwise.
func (c *Client) Place(ctx context.Context, file wire.File, size int64, content io.Reader) error {
	conn, err := c.dial(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if err := wire.Write(conn, wire.Request{Op: wire.OpPlace, File: &file, Size: size}); err != nil {
		return c.lost(ctx, err)
	}
	if err := c.confirmed(ctx, conn, nil); err != nil {
		return err
	}
	source := &readError{from: io.LimitReader(content, size)}
	sent, err := io.CopyBuffer(struct{ io.Writer }{conn}, source, make([]byte, placeBuffer))
	if source.err == nil && err == nil && sent != size {
		source.err = io.ErrUnexpectedEOF
	}
	if source.err != nil {
		return fmt.Errorf("place %s: %w", file.Path, source.err)
	}
	if err == nil {
		err = wire.Write(conn, wire.Request{Op: wire.OpCommit})
	}
	return c.confirmed(ctx, conn, err) // a broken connection may still hold why
}

// confirmed reads the init's answer about a file or command; broken is the error of sending to it.
func (c *Client) confirmed(ctx context.Context, conn net.Conn, broken error) error {
	var answer wire.Response
	switch err := wire.Read(conn, &answer); {
	case err == nil && answer.Error != nil:
		return answer.Error
	case broken != nil:
		return c.lost(ctx, broken)
	case err != nil:
		return c.lost(ctx, err)
	}
	return nil
}

// readError keeps the failure to read apart from a failure to send.
type readError struct {
	from io.Reader
	err  error
}

func (r *readError) Read(into []byte) (int, error) {
	n, err := r.from.Read(into)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}

// StartProcess makes sure that a supervised process runs.
func (c *Client) StartProcess(ctx context.Context, spec wire.ProcessSpec) (wire.Process, error) {
	return c.process(ctx, wire.Request{Op: wire.OpStart, Process: &spec})
}

// StopProcess stops a supervised process and waits for its end.
func (c *Client) StopProcess(ctx context.Context, name string) (wire.Process, error) {
	return c.process(ctx, wire.Request{Op: wire.OpStop, Name: name})
}

// InspectProcess returns the state of a supervised process.
func (c *Client) InspectProcess(ctx context.Context, name string) (wire.Process, error) {
	return c.process(ctx, wire.Request{Op: wire.OpInspect, Name: name})
}

// Processes returns how the supervised processes fare.
func (c *Client) Processes(ctx context.Context) ([]wire.Supervised, error) {
	answer, err := c.call(ctx, wire.Request{Op: wire.OpProcesses})
	return answer.Supervised, err
}

func (c *Client) process(ctx context.Context, request wire.Request) (wire.Process, error) {
	answer, err := c.call(ctx, request)
	if err != nil {
		return wire.Process{}, err
	}
	if answer.Process == nil {
		return wire.Process{}, wire.Errorf(wire.CodeProtocolUnknown, "the member's init returned no process")
	}
	return *answer.Process, nil
}

// exit makes the init stop everything within grace and end.
func (c *Client) exit(ctx context.Context, grace time.Duration) error {
	_, err := c.call(ctx, wire.Request{Op: wire.OpExit, GraceMillis: grace.Milliseconds()})
	return err
}
