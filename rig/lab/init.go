package lab

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// initName is the argument 0 under which this program runs as the init of a node; argument 1 is the lab's folder.
const initName = "app-platform-lab-init"

// hooked guards against a program that makes labs without the hook: its inits would run the program itself, again and
// again.
var hooked atomic.Bool

// MaybeRunInit turns this process into the init of a node when it was started as one, and then never returns. A program
// that makes labs calls it first in main (and in TestMain), before it reads flags or opens anything.
func MaybeRunInit() {
	hooked.Store(true)
	if os.Args[0] != initName {
		return
	}
	conn, err := unixConn(os.NewFile(controlFD, "control"))
	if err != nil {
		fmt.Fprintln(os.Stderr, initName, err)
		os.Exit(1)
	}
	os.Exit((&initProcess{conn: conn}).run())
}

// initProcess is process 1 of a node. It reaps every process that loses its parent, and knows those that it spawned
// itself.
type initProcess struct {
	conn  *net.UnixConn
	plain atomic.Bool
	mu    sync.Mutex   // held while spawning, so that a child is known before it can be reaped
	known map[int]bool // spawned and not yet reaped
}

func (p *initProcess) run() int {
	p.known = map[int]bool{}
	// SIGTERM is a plain node's parent-death signal. A real node can only get it from inside, and ignores it.
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	signal.Ignore(syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE)
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	go func() {
		for range children {
			p.reap()
		}
	}()
	served := make(chan struct{})
	go func() {
		defer close(served)
		p.serve()
	}()
	for {
		select {
		case <-served: // the lab is gone or has closed the socket
		case <-stop:
			if !p.plain.Load() {
				continue
			}
		}
		break
	}
	if p.plain.Load() {
		p.endDescendants()
	}
	return 0
}

func (p *initProcess) serve() {
	for {
		var r request
		files, err := receivePacket(p.conn, &r)
		if err != nil {
			return
		}
		a := p.handle(r, files)
		closeAll(files)
		a.ID = r.ID
		if sendPacket(p.conn, a) != nil {
			return
		}
	}
}

func (p *initProcess) handle(r request, files []*os.File) answer {
	var pid int
	var err error
	switch {
	case r.Setup != nil:
		err = p.setUp(*r.Setup)
	case r.Spawn != nil:
		pid, err = p.spawn(*r.Spawn, files)
	case r.PID > 0:
		if err = syscall.Kill(-r.PID, syscall.Signal(r.Signal)); errors.Is(err, syscall.ESRCH) {
			err = nil
		}
	default:
		err = errors.New("empty request")
	}
	if err != nil {
		return answer{Error: err.Error()}
	}
	return answer{PID: pid}
}

func (p *initProcess) setUp(s setup) error {
	p.plain.Store(s.Plain)
	if s.Plain {
		return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	}
	return buildRoot(s)
}

// spawn starts a program in a session of its own: files[0] takes its output, the others become descriptors 3, 4, ….
func (p *initProcess) spawn(call spawnCall, files []*os.File) (int, error) {
	if len(files) == 0 || len(call.Command) == 0 {
		return 0, errors.New("spawn without a command or an output")
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, err
	}
	defer null.Close()
	path, err := exec.LookPath(call.Command[0])
	if err != nil {
		return 0, err
	}
	fds := []uintptr{null.Fd(), files[0].Fd(), files[0].Fd()}
	for _, file := range files[1:] {
		fds = append(fds, file.Fd())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	pid, err := syscall.ForkExec(path, call.Command, &syscall.ProcAttr{
		Dir: call.Dir, Env: call.Env, Files: fds, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return 0, &os.PathError{Op: "start", Path: path, Err: err}
	}
	p.known[pid] = true
	return pid, nil
}

// reap collects every ended child and reports the known ones.
func (p *initProcess) reap() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		if p.known[pid] {
			delete(p.known, pid)
			_ = sendPacket(p.conn, answer{PID: pid, Status: int(status)})
		}
	}
}
