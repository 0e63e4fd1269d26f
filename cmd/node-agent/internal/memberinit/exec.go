package memberinit

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit/reaper"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit/shim"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

const (
	// execBuffer is how much of an output is passed on at once, in bytes.
	execBuffer = 32 << 10
	// drainPatience is how long output is waited for once the command has ended: what it left behind may hold it open.
	drainPatience = time.Second
)

// execution is a command that somebody works with.
type execution struct {
	conn   net.Conn
	input  *os.File   // what it reads
	tty    *os.File   // its terminal, the same file; nil for none
	output []execPipe // what it writes
	child  []*os.File // the shim's descriptors 0 to 3
	spec   *os.File   // how the shim learns what to run
	shim   shimmed
	write  sync.Mutex
}

// execPipe is one of a command's outputs.
type execPipe struct {
	stream string
	read   *os.File
}

// handleExec runs a command until it ends, or the connection does.
func (s *server) handleExec(conn net.Conn, request wire.Exec) {
	command, err := s.settings.prepareExec(request)
	if err != nil {
		_ = wire.Write(conn, done(err))
		return
	}
	e := &execution{conn: conn}
	if err = e.open(request); err == nil {
		if err = e.begin(s.runs.reap, command, request.TTY); err != nil {
			e.close()
		}
	}
	if err != nil {
		_ = wire.Write(conn, done(wire.Errorf(wire.CodeStartFailed, "%v", err)))
		return
	}
	_ = wire.Write(conn, wire.Response{Done: true})
	e.serve()
}

// open makes the terminal, or the pipes.
func (e *execution) open(request wire.Exec) error {
	read, write, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("start command: %w", err)
	}
	e.spec = write
	if request.TTY {
		master, terminal, err := pty.Open()
		if err != nil {
			return errors.Join(fmt.Errorf("open a terminal: %w", err), read.Close(), write.Close())
		}
		_ = pty.Setsize(master, &pty.Winsize{Rows: request.Rows, Cols: request.Cols})
		e.input, e.tty = master, master
		e.output = []execPipe{{"stdout", master}}
		e.child = []*os.File{terminal, terminal, terminal, read}
		return nil
	}
	ducts, err := openDucts(3)
	if err != nil {
		return errors.Join(fmt.Errorf("start command: %w", err), read.Close(), write.Close())
	}
	e.input = ducts[0].write
	e.output = []execPipe{{"stdout", ducts[1].read}, {"stderr", ducts[2].read}}
	e.child = []*os.File{ducts[0].read, ducts[1].write, ducts[2].write, read}
	return nil
}

// begin starts the shim, which runs the command and inherits all that it leaves behind.
func (e *execution) begin(reap *reaper.Reaper, command prepared, tty bool) error {
	if tty && command.credential != nil { // its owner may open it again, as programs do
		_ = e.child[0].Chown(int(command.credential.Uid), int(command.credential.Gid))
	}
	for _, file := range e.child {
		if err := unix.SetNonblock(int(file.Fd()), false); err != nil {
			return fmt.Errorf("start command: %w", err)
		}
	}
	started, err := startShim(reap, e.child)
	if err != nil {
		return err
	}
	e.shim = started
	e.closeChild()
	_ = json.NewEncoder(e.spec).Encode(shim.Spec{Path: command.path, Args: command.args, Dir: command.dir,
		Env: command.env, Credential: command.credential, TTY: tty})
	return e.spec.Close()
}

// serve passes everything on, and the end at last.
func (e *execution) serve() {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		e.feed()
	}()
	var outputs sync.WaitGroup
	for _, one := range e.output {
		outputs.Go(func() { e.pass(one) })
	}
	code := 0
	select {
	case code = <-e.shim.ended:
	case <-gone:
		e.shim.kill()
		<-e.shim.ended
	}
	drained := make(chan struct{})
	go func() {
		outputs.Wait()
		close(drained)
	}()
	select {
	case <-drained:
	case <-time.After(drainPatience):
	}
	e.send(wire.Response{Result: &wire.RunResult{ExitCode: code}})
	e.close()
	<-drained
}

// feed gives the command its input until the connection ends.
func (e *execution) feed() {
	_ = e.conn.SetReadDeadline(time.Time{})
	for {
		var next wire.ExecInput
		if wire.Read(e.conn, &next) != nil {
			return
		}
		switch {
		case next.Rows > 0 && e.tty != nil:
			_ = pty.Setsize(e.tty, &pty.Winsize{Rows: next.Rows, Cols: next.Cols})
		case next.End && e.tty != nil:
			_, _ = e.input.Write([]byte{4}) // the end of input, as a terminal says it
		case next.End:
			_ = e.input.Close()
		case len(next.Data) > 0:
			_, _ = e.input.Write(next.Data) // a command need not read its input
		}
	}
}

// pass passes one output on. A reader that does not read holds the command up.
func (e *execution) pass(from execPipe) {
	buffer := make([]byte, execBuffer)
	for {
		n, err := from.read.Read(buffer)
		if n > 0 && !e.send(wire.Response{Output: &wire.Output{Stream: from.stream, Data: buffer[:n]}}) || err != nil {
			return
		}
	}
}

func (e *execution) send(answer wire.Response) bool {
	e.write.Lock()
	defer e.write.Unlock()
	_ = e.conn.SetWriteDeadline(time.Time{})
	return wire.Write(e.conn, answer) == nil
}

func (e *execution) closeChild() {
	for _, file := range e.child {
		_ = file.Close() // a terminal stands there three times
	}
	e.child = nil
}

// close closes everything that is open.
func (e *execution) close() {
	e.closeChild()
	_ = e.spec.Close()
	_ = e.input.Close()
	for _, one := range e.output {
		_ = one.read.Close()
	}
}
