package lab

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"

	"github.com/gpuaas/app-platform/internal/supervise"
)

// ErrNodeGone is returned for any request to a node that has ended.
var ErrNodeGone = errors.New("the node has ended")

// control is the lab's side of one init: it starts it, asks it things, and knows the processes it spawned.
type control struct {
	cmd  *exec.Cmd
	conn *net.UnixConn
	env  []string
	done chan struct{} // closed when the init has ended

	mu      sync.Mutex
	lastID  int
	waiting map[int]chan answer // requests without a reply yet
	exits   map[int]chan int    // wait status of spawned processes, by their number inside the node
}

// startInit starts this program again as an init in the namespaces of flags. It gets the signal death when the lab
// dies. env is its environment, and that of every program on the node that brings none.
func startInit(dir string, env []string, flags uintptr, death syscall.Signal) (*control, error) {
	if !hooked.Load() {
		return nil, errors.New("the program does not call lab.MaybeRunInit first")
	}
	conn, theirs, err := socketPair()
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	defer theirs.Close()
	c := &control{
		conn: conn, env: env, done: make(chan struct{}), waiting: map[int]chan answer{}, exits: map[int]chan int{},
		cmd: &exec.Cmd{
			Path: "/proc/self/exe", Args: []string{initName, dir}, Env: env, ExtraFiles: []*os.File{theirs},
			Stderr:      os.Stderr,
			SysProcAttr: &syscall.SysProcAttr{Cloneflags: flags, Pdeathsig: death, Setsid: true},
		},
	}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the parent-death signal follows this thread
		err := c.cmd.Start()
		started <- err
		if err == nil {
			_ = c.cmd.Wait()
			close(c.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, errors.Join(fmt.Errorf("start init: %w", err), conn.Close())
	}
	go c.listen()
	return c, nil
}

// NodeEnv returns the environment of a program on a node that is given none of its own.
func NodeEnv() []string {
	return []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LANG=C.UTF-8",
		"container=lab"}
}

// listen passes replies and exits on until the socket ends; then it closes the channels of all that wait.
func (c *control) listen() {
	defer c.abandon()
	for {
		var a answer
		files, err := receivePacket(c.conn, &a)
		if err != nil {
			return
		}
		closeAll(files)
		if a.ID == 0 {
			c.exit(a.PID) <- a.Status
			continue
		}
		c.mu.Lock()
		reply := c.waiting[a.ID]
		delete(c.waiting, a.ID)
		c.mu.Unlock()
		if reply != nil {
			reply <- a
		}
	}
}

func (c *control) abandon() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, reply := range c.waiting {
		close(reply)
		delete(c.waiting, id)
	}
	c.waiting = nil
	for _, exit := range c.exits {
		close(exit)
	}
	c.exits = nil
}

// exit returns the channel for one process's end. The end may be reported before the reply that names the process is
// read, so whichever of the two comes first creates the channel.
func (c *control) exit(pid int) chan int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.exits == nil {
		gone := make(chan int)
		close(gone)
		return gone
	}
	if c.exits[pid] == nil {
		c.exits[pid] = make(chan int, 1)
	}
	return c.exits[pid]
}

func (c *control) forget(pid int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.exits, pid)
}

// ask sends a request and waits for its reply.
func (c *control) ask(r request, files ...*os.File) (answer, error) {
	reply := make(chan answer, 1)
	c.mu.Lock()
	if c.waiting == nil {
		c.mu.Unlock()
		return answer{}, ErrNodeGone
	}
	c.lastID++
	r.ID = c.lastID
	c.waiting[r.ID] = reply
	c.mu.Unlock()
	if err := sendPacket(c.conn, r, files...); err != nil {
		c.mu.Lock()
		delete(c.waiting, r.ID)
		c.mu.Unlock()
		if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, net.ErrClosed) {
			return answer{}, ErrNodeGone
		}
		return answer{}, err
	}
	a, ok := <-reply
	if !ok {
		return answer{}, ErrNodeGone
	}
	if a.Error != "" {
		return a, errors.New(a.Error)
	}
	return a, nil
}

// Spawn starts a program on the node: control is the supervise.Spawner of its node.
func (c *control) Spawn(spec supervise.Spec, out *os.File) (supervise.Process, error) {
	call := &spawnCall{Command: spec.Command, Env: spec.Env, Dir: spec.Dir}
	if call.Env == nil {
		call.Env = c.env
	}
	if call.Dir == "" {
		call.Dir = "/"
	}
	a, err := c.ask(request{Spawn: call}, append([]*os.File{out}, spec.ExtraFiles...)...)
	if err != nil {
		return nil, err
	}
	return &process{control: c, pid: a.PID, exit: c.exit(a.PID)}, nil
}

// process is one run of a program on a node; its number counts inside the node.
type process struct {
	control *control
	pid     int
	exit    chan int
}

func (p *process) PID() int { return p.pid }

func (p *process) Signal(signal syscall.Signal) error {
	_, err := p.control.ask(request{PID: p.pid, Signal: int(signal)})
	if errors.Is(err, ErrNodeGone) {
		return nil
	}
	return err
}

func (p *process) Wait() error {
	raw, ok := <-p.exit
	if !ok {
		return ErrNodeGone
	}
	p.control.forget(p.pid)
	switch status := syscall.WaitStatus(raw); {
	case status.Signaled():
		return fmt.Errorf("signal: %s", status.Signal())
	case status.ExitStatus() != 0:
		return fmt.Errorf("exit status %d", status.ExitStatus())
	default:
		return nil
	}
}
