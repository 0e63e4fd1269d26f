package memberinit

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/logfile"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit/output"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit/reaper"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit/results"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit/shim"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/procfs"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

const (
	// requestPatience bounds how long a connection may take to say what it wants.
	requestPatience = 10 * time.Second
	// maxConnections bounds the agent's connections to one member.
	maxConnections = 256
)

// server is a member's init once it is up.
type server struct {
	settings  Settings
	runs      *runs
	processes *processes
	log       *slog.Logger
	listener  net.Listener
	exit      chan time.Duration
}

// opened is what an init begins with: where results and logs are kept, its socket, and how it says that it is ready.
type opened struct {
	state    *os.Root
	listener net.Listener
	tell     func(error) error
}

// inherited is what boot leaves to the init of a member without walls.
func inherited() (opened, error) {
	for _, fd := range []int{fdStatus, fdListen, fdState} {
		unix.CloseOnExec(fd)
	}
	return open(fmt.Sprintf("/proc/self/fd/%d", fdState), fdListen, tellStatus)
}

// contained is what the container of a member has. The agent asks by the socket whether the init is ready.
func contained() (opened, error) {
	unix.CloseOnExec(fdContainer)
	unix.Umask(0o022)
	return open(containerState, fdContainer, func(err error) error { return err })
}

// containerState is where a container has its results and logs.
const containerState = "/.member/state"

func open(state string, listener int, tell func(error) error) (opened, error) {
	o := opened{tell: tell}
	var err error
	if o.state, err = os.OpenRoot(state); err != nil {
		return o, fmt.Errorf("open state directory: %w", err)
	}
	if o.listener, err = net.FileListener(os.NewFile(uintptr(listener), "listener")); err != nil {
		return o, fmt.Errorf("open socket: %w", err)
	}
	return o, nil
}

// serve owns the member until a request makes it exit.
func serve(with opened, err error) error {
	_ = os.WriteFile("/proc/self/comm", []byte("member-init"), 0) // for those who read a process list
	if err != nil {
		return with.tell(err)
	}
	s, reap, err := assemble(with)
	if err != nil {
		return with.tell(err)
	}
	_ = with.tell(nil) // an agent killed by now finds the member by its socket
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	// Members end by OpExit or with their node, not by a stray signal. Caught rather than ignored: children
	// would inherit an ignored signal.
	signal.Notify(make(chan os.Signal, 1), unix.SIGHUP, unix.SIGINT, unix.SIGTERM)
	go reap.Run(ctx)
	go s.accept()
	s.log.Info("member is up", "member_id", s.settings.MemberID, "mode", s.settings.Mode, "epoch", s.settings.Epoch)
	s.shutdown(<-s.exit)
	return nil
}

func assemble(with opened) (*server, *reaper.Reaper, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, nil, fmt.Errorf("become subreaper: %w", err)
	}
	settings, err := readSettings(with.state)
	if err != nil {
		return nil, nil, err
	}
	stored, err := results.Open(with.state, DirLogs)
	if err != nil {
		return nil, nil, err
	}
	logs, err := with.state.OpenRoot(DirLogs)
	if err != nil {
		return nil, nil, fmt.Errorf("open process logs: %w", err)
	}
	own, err := output.OpenLog(with.state, initLog)
	if err != nil {
		return nil, nil, err
	}
	if err := skeleton(settings); err != nil {
		return nil, nil, err
	}
	reap := reaper.New()
	return &server{
		settings: settings, log: slog.New(slog.NewJSONHandler(own, nil)), listener: with.listener,
		exit: make(chan time.Duration, 1),
		runs: &runs{settings: settings, reap: reap, results: stored, byKey: map[string]*run{}},
		processes: &processes{
			settings: settings, reap: reap, logs: logs, byName: map[string]*process{},
			logOf: map[string]*logfile.Writer{},
		},
	}, reap, nil
}

// skeleton gives a plain directory the few folders that programs expect of a root.
func skeleton(s Settings) error {
	if s.Mode != ModeProcess {
		return nil
	}
	for _, dir := range []string{"etc", "home", "run", ScratchPath, "tmp", "var/lib", "var/log"} {
		if err := os.MkdirAll(filepath.Join(s.Root, dir), 0o755); err != nil {
			return fmt.Errorf("make root: %w", err)
		}
	}
	return nil
}

func (s *server) accept() {
	slots := make(chan struct{}, maxConnections)
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		slots <- struct{}{}
		go func() {
			defer func() { <-slots }()
			defer conn.Close()
			s.handle(conn)
		}()
	}
}

func (s *server) handle(conn net.Conn) {
	_ = conn.SetReadDeadline(time.Now().Add(requestPatience))
	var request wire.Request
	if err := wire.Read(conn, &request); err != nil {
		return
	}
	if request.Op == wire.OpRun && request.Run != nil {
		s.handleRun(conn, *request.Run)
		return
	}
	if request.Op == wire.OpExec && request.Exec != nil {
		s.handleExec(conn, *request.Exec)
		return
	}
	if request.Op == wire.OpPlace && request.File != nil {
		s.handlePlace(conn, request)
		return
	}
	_ = wire.Write(conn, s.answer(request))
}

// answer handles everything that has one answer.
func (s *server) answer(request wire.Request) wire.Response {
	switch {
	case request.Op == wire.OpHello:
		return wire.Response{Hello: &wire.Hello{Version: wire.Version, Epoch: s.settings.Epoch, Mode: s.settings.Mode}}
	case request.Op == wire.OpCancel:
		s.runs.cancel(request.Key)
		return done(nil)
	case request.Op == wire.OpAck:
		return done(s.runs.ack(request.Key))
	case request.Op == wire.OpWrite && request.File != nil:
		return done(s.settings.files().Write(*request.File))
	case request.Op == wire.OpStart && request.Process != nil:
		return aboutProcess(s.processes.start(*request.Process))
	case request.Op == wire.OpStop:
		return aboutProcess(s.processes.stop(request.Name))
	case request.Op == wire.OpInspect:
		return aboutProcess(s.processes.inspect(request.Name))
	case request.Op == wire.OpProcesses:
		return wire.Response{Done: true, Supervised: s.processes.list()}
	case request.Op == wire.OpExit:
		select {
		case s.exit <- time.Duration(request.GraceMillis) * time.Millisecond:
		default: // it is leaving already
		}
		return done(nil)
	}
	return done(wire.Errorf(wire.CodeProtocolUnknown, "operation %q is not known", request.Op))
}

func done(err error) wire.Response {
	if err != nil {
		return wire.Response{Error: wire.AsError(err)}
	}
	return wire.Response{Done: true}
}

func aboutProcess(process wire.Process, err error) wire.Response {
	if err != nil {
		return wire.Response{Error: wire.AsError(err)}
	}
	return wire.Response{Process: &process}
}

// handleRun starts or attaches, passes output on as it comes, and ends with the result. A watcher that
// goes away does not touch the run.
func (s *server) handleRun(conn net.Conn, request wire.Run) {
	found, err := s.runs.begin(request)
	if err != nil {
		_ = wire.Write(conn, done(err))
		return
	}
	follower := follower{conn: conn, gone: make(chan struct{})}
	go follower.watch()
	for {
		outMore, outChange := follower.pass("stdout", found.stdout, &follower.out)
		errMore, errChange := follower.pass("stderr", found.stderr, &follower.err)
		if follower.broken {
			return
		}
		if !outMore && !errMore {
			break
		}
		select {
		case <-outChange:
		case <-errChange:
		case <-follower.gone:
			return
		}
	}
	select {
	case <-found.done:
		follower.write(wire.Response{Result: &found.result})
	case <-follower.gone:
	}
}

// follower is one watcher of a run and how far it has seen.
type follower struct {
	conn     net.Conn
	gone     chan struct{} // closed when the peer hangs up
	out, err int
	broken   bool
}

// watch ends with the connection, which its handler closes.
func (f *follower) watch() {
	defer close(f.gone)
	_ = f.conn.SetReadDeadline(time.Time{})
	_, _ = f.conn.Read(make([]byte, 1))
}

func (f *follower) pass(stream string, from *output.Capture, offset *int) (more bool, change <-chan struct{}) {
	data, more, change := from.From(*offset)
	if len(data) == 0 || f.broken {
		return more, change
	}
	f.write(wire.Response{Output: &wire.Output{Stream: stream, Offset: int64(*offset), Data: data}})
	*offset += len(data)
	return more, change
}

// write gives each frame its own time: a command may be silent for long after its last output.
func (f *follower) write(frame wire.Response) {
	_ = f.conn.SetWriteDeadline(time.Now().Add(requestPatience))
	f.broken = wire.Write(f.conn, frame) != nil
}

// shutdown stops what runs, within the grace, and then kills what is left. In a namespace the kernel
// would do the last part at exit; a plain directory has only this.
func (s *server) shutdown(grace time.Duration) {
	s.runs.stop()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		s.processes.stopAll()
	}()
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-stopped:
	case <-timer.C:
	}
	err := procfs.KillTree(os.Getpid(), shim.KillPatience)
	s.processes.settle()
	s.log.Info("member ends", "member_id", s.settings.MemberID, "error", err)
	_ = s.listener.Close()
}
