package sshd

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"

	"golang.org/x/crypto/ssh"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/sandbox"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
	"github.com/gpuaas/app-platform/sdk/tunnel"
)

const (
	// maxEnv is how many variables a client may set.
	maxEnv = 64
	// maxScreen is the most rows or columns of a terminal.
	maxScreen = 1_000
	// unstarted is the exit code of a command that could not be started, as a shell's.
	unstarted = 127
)

// subsystemFiles is the name of the file transfer that sftp, scp and editors use.
const subsystemFiles = "sftp"

// session is what somebody does in a member over one connection.
type session struct {
	server *Server
	id     string // of the member
	member *sandbox.Client
	user   string
}

// channel serves a shell, a command, files, or a port.
func (s *session) channel(ctx context.Context, asked ssh.NewChannel) {
	switch asked.ChannelType() {
	case "session":
		channel, requests, err := asked.Accept()
		if err != nil {
			return
		}
		(&work{session: s, channel: channel}).serve(ctx, requests)
	case "direct-tcpip":
		s.forward(ctx, asked)
	default:
		_ = asked.Reject(ssh.UnknownChannelType, "this server offers shells, commands, files, and ports of the member")
	}
}

// forward passes bytes to a port of the member itself.
func (s *session) forward(ctx context.Context, asked ssh.NewChannel) {
	var to struct {
		Host   string
		Port   uint32
		Origin string
		From   uint32
	}
	if ssh.Unmarshal(asked.ExtraData(), &to) != nil || to.Port < 1 || to.Port > 65_535 {
		_ = asked.Reject(ssh.ConnectionFailed, "a port is a number from 1 to 65535")
		return
	}
	way, err := s.server.members.Reach(s.id)
	switch {
	case err != nil:
		_ = asked.Reject(ssh.ConnectionFailed, err.Error())
		return
	case way.Address == "": // the port could be anybody's on the node
		_ = asked.Reject(ssh.Prohibited, "the member has no network of its own on this node")
		return
	case !slices.Contains([]string{"localhost", "127.0.0.1", "::1", way.Address}, to.Host):
		_ = asked.Reject(ssh.Prohibited, "only ports of the member itself are forwarded: name localhost")
		return
	}
	host := to.Host
	if host == "localhost" {
		host = "127.0.0.1"
	}
	conn, err := way.Dial(ctx, "tcp", net.JoinHostPort(host, fmt.Sprint(to.Port)))
	if err != nil {
		_ = asked.Reject(ssh.ConnectionFailed, fmt.Sprintf("nothing in the member answers on port %d", to.Port))
		return
	}
	channel, requests, err := asked.Accept()
	if err != nil {
		_ = conn.Close()
		return
	}
	go ssh.DiscardRequests(requests)
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	tunnel.Join(channel, conn)
}

// work is one shell, command or transfer of files.
type work struct {
	*session
	channel ssh.Channel
	command wire.Exec
	began   bool // it has asked for something to run

	mu      sync.Mutex // of what is written to running
	running net.Conn
}

// serve serves the client's requests of a session. Only the first shell, command or subsystem runs.
func (w *work) serve(ctx context.Context, requests <-chan *ssh.Request) {
	ended := make(chan struct{})
	var once sync.Once
	end := func() { once.Do(func() { close(ended); _ = w.channel.Close() }) }
	defer end()
	var passing sync.WaitGroup
	defer passing.Wait()
	for request := range requests {
		begins, ok := w.take(request)
		var refused error
		if begins && ok {
			w.began, refused = true, w.start(ctx)
		}
		if request.WantReply {
			_ = request.Reply(ok, nil)
		}
		switch {
		case refused != nil:
			w.refuse(refused)
			end()
		case begins && ok:
			passing.Go(func() {
				defer end()
				w.pass(ctx, ended)
			})
		}
	}
	if w.running != nil { // whoever worked with it has gone
		_ = w.running.Close()
	}
}

// take notes what a request sets; begins reports whether it is one to run something, and ok whether it is accepted.
func (w *work) take(request *ssh.Request) (begins, ok bool) {
	switch request.Type {
	case "pty-req":
		return false, w.terminal(request.Payload)
	case "window-change":
		var size struct{ Cols, Rows, Width, Height uint32 }
		if ssh.Unmarshal(request.Payload, &size) != nil {
			return false, false
		}
		w.write(wire.ExecInput{Rows: screen(size.Rows), Cols: screen(size.Cols)})
		return false, true
	case "env":
		var one struct{ Name, Value string }
		if ssh.Unmarshal(request.Payload, &one) != nil || len(w.command.Env) >= maxEnv || !harmless(one.Name) {
			return false, false
		}
		w.command.Env = append(w.command.Env, one.Name+"="+one.Value)
		return false, true
	case "shell":
		w.command.Login = true
		return true, !w.began
	case "exec":
		var one struct{ Line string }
		if ssh.Unmarshal(request.Payload, &one) != nil || w.began {
			return false, false
		}
		w.command.Login, w.command.Line = true, one.Line
		return true, true
	case "subsystem":
		var one struct{ Name string }
		if ssh.Unmarshal(request.Payload, &one) != nil || one.Name != subsystemFiles || w.began {
			return false, false
		}
		w.command.Builtin, w.command.TTY = wire.BuiltinFiles, false
		return true, true
	default:
		return false, false
	}
}

// harmless reports whether a client may set a variable: the language, as the field's servers let it.
func harmless(name string) bool {
	return name == "LANG" || name == "COLORTERM" || len(name) > 3 && name[:3] == "LC_"
}

// terminal notes the terminal that the client has.
func (w *work) terminal(payload []byte) bool {
	var asked struct {
		Term                      string
		Cols, Rows, Width, Height uint32
		Modes                     string
	}
	if ssh.Unmarshal(payload, &asked) != nil || w.began || len(asked.Term) > 64 {
		return false
	}
	w.command.TTY, w.command.Rows, w.command.Cols = true, screen(asked.Rows), screen(asked.Cols)
	w.command.Env = append(w.command.Env, "TERM="+asked.Term)
	return true
}

// screen is a number of rows or columns that a terminal can have.
func screen(number uint32) uint16 { return uint16(min(number, maxScreen)) } // #nosec G115 -- at most maxScreen

// start runs the command.
func (w *work) start(ctx context.Context) error {
	w.command.User = w.user
	running, err := w.member.Exec(ctx, w.command)
	w.running = running
	return err
}

// refuse writes to the client why nothing runs, as a shell would.
func (w *work) refuse(err error) {
	_, _ = fmt.Fprintf(w.channel.Stderr(), "%s\r\n", err)
	w.exit(unstarted)
}

// pass passes everything on until the command ends or the client does.
func (w *work) pass(ctx context.Context, ended <-chan struct{}) {
	stop := context.AfterFunc(ctx, func() { _ = w.running.Close() })
	defer stop()
	defer func() { _ = w.running.Close() }()
	go w.feed(ended)
	for {
		var next wire.Response
		if wire.Read(w.running, &next) != nil {
			return
		}
		switch {
		case next.Result != nil:
			w.exit(next.Result.ExitCode)
			return
		case next.Output == nil:
			continue
		}
		to := io.Writer(w.channel)
		if next.Output.Stream == "stderr" {
			to = w.channel.Stderr()
		}
		if _, err := to.Write(next.Output.Data); err != nil {
			return
		}
	}
}

// feed gives the command its input.
func (w *work) feed(ended <-chan struct{}) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := w.channel.Read(buffer)
		if n > 0 && !w.write(wire.ExecInput{Data: buffer[:n]}) {
			return
		}
		if err == nil {
			continue
		}
		select {
		case <-ended:
		default:
			w.write(wire.ExecInput{End: true})
		}
		return
	}
}

// write gives the command what comes next; not ok once nothing runs.
func (w *work) write(next wire.ExecInput) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.running != nil && wire.Write(w.running, next) == nil
}

// exit sends the client the exit code.
func (w *work) exit(code int) {
	_ = w.channel.CloseWrite()
	status := binary.BigEndian.AppendUint32(nil, uint32(code)) // #nosec G115 -- small
	_, _ = w.channel.SendRequest("exit-status", false, status)
}
